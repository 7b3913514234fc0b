"""The designer for those who do not see it well, or have no mouse: axe-core and the keyboard."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "widgets" / "js" / "node_modules" / "axe-core" / "axe.min.js"
FIND = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
    return bad.flatMap(({ id, impact, nodes }) => nodes.map(({ target, any, all, none }) =>
        `${impact} ${id}: ${target.join(" ")}: ${[...any, ...all, ...none][0]?.message}`));
}"""
SLOW = 90_000
"""ms for a solve on a busy machine."""


def violations(page):
    """Return what axe-core finds that is serious or critical: which rule, where, why."""
    page.wait_for_timeout(350)  # colours on their way are no contrast of anything
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = page.evaluate(FIND)
    return found


def show(page, view):
    """Choose how the cluster is shown."""
    page.get_by_role("radiogroup").get_by_text(view, exact=True).click()


def tell(found):
    """Fail with everything that was found, a line each."""
    lines = [f"{state}: {row}" for state, rows in found.items() for row in rows]
    assert not lines, "\n".join(lines)


def press_until(page, reached, *, key="Tab", most=80):
    """Press a key until something is true of what has the focus."""
    for _ in range(most):
        page.keyboard.press(key)
        if page.evaluate(f"() => {{ const at = document.activeElement; return {reached}; }}"):
            return
    pytest.fail(f"{most} times {key} did not reach {reached}")


def named(label):
    """Say in JavaScript that the focus is on what has a name."""
    return f"[at.getAttribute('aria-label'), at.textContent.trim()].includes('{label}')"


def test_axe_finds_nothing_in_either_scheme(designer):
    """In every view; in the dark too, since its colours are others."""
    page = designer.page
    found = {"at first": violations(page)}
    page.keyboard.press("Control+Enter")
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    found["solved"] = violations(page)
    for view in ("Table", "Compare", "What if"):
        show(page, view)
        found[view] = violations(page)
        page.get_by_role("button", name="Switch between light and dark").click()
        found[f"{view}, dark"] = violations(page)
        page.get_by_role("button", name="Switch between light and dark").click()
    show(page, "Canvas")
    designer.click("g3")
    page.get_by_role("button", name="Switch between light and dark").click()
    found["solved, dark"] = violations(page)
    tell(found)


def test_axe_finds_nothing_in_what_opens_above_the_page(designer):
    page = designer.page
    found = {}
    page.get_by_role("button", name="Export").click()
    found["menu"] = violations(page)
    page.get_by_role("menuitem", name="More formats").click()
    page.get_by_role("dialog").wait_for()
    found["export"] = violations(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="About", exact=True).click()
    page.get_by_role("dialog").wait_for()
    found["mathematics"] = violations(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Options of the method").click()
    page.get_by_role("dialog").wait_for()
    found["options"] = violations(page)
    page.keyboard.press("Escape")
    page.locator(".ds-cluster").first.click()
    page.get_by_role("dialog").wait_for()
    found["cluster"] = violations(page)
    page.keyboard.press("Escape")
    designer.keys("?")
    found["keys"] = violations(page)
    tell(found)


def test_a_cluster_is_drawn_solved_and_played_without_a_mouse(designer):
    """Three GPUs and a switch: drawn, joined, asked about, solved, played and stepped through."""
    page, keyboard = designer.page, designer.page.keyboard
    press_until(page, named("New"))
    keyboard.press("Enter")
    expect(page.locator("#counts")).to_contain_text("0 GPUs")
    page.evaluate("() => document.activeElement.blur()")
    press_until(page, named("Skip to the drawing"), key="Shift+Tab")
    keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.classList.contains('tl')")
    for key in "gggs":
        keyboard.press(key)
    designer.settle()
    *gpus, switch = designer.names
    for gpu in gpus:
        choose_device(designer, gpu)
        keyboard.press("l")
        for _ in range(5):
            if designer.ask("c.canvas.pull?.over") == switch:
                break
            keyboard.press("Tab")
        keyboard.press("Enter")
        keyboard.press("Escape")
        keyboard.press("Escape")
        designer.settle()
    assert len(designer.pairs) == 6
    expect(page.locator("#counts")).to_contain_text("3 GPUs")

    keyboard.press("Control+Enter")
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    expect(page.locator("#schedule")).to_contain_text(re.compile("above the .*bound"))
    keyboard.press("Home")
    keyboard.press("ArrowRight")
    designer.settle()
    assert designer.ask("c.clock.time") > 0
    keyboard.press(" ")
    page.wait_for_function("() => document.querySelector('.tl').__canvas.clock.time > 1")
    assert page.evaluate("() => document.activeElement.classList.contains('tl')")


def choose_device(designer, name):
    """Select the first device, then walk on: Tab after the last one leaves the canvas."""
    designer.page.keyboard.press("Escape")
    designer.page.keyboard.press("Enter")
    for _ in designer.names:
        designer.settle()
        if designer.ask("c.canvas.selection.devices") == [name]:
            return
        designer.page.keyboard.press("Tab")
    pytest.fail(f"Tab did not reach {name}")
