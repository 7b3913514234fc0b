"""Files of others as a user meets them: dropped, asked about, merged, played, exported, copied."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""

SAMPLES = Path(__file__).parents[1] / "interchange/formats/samples"

DRAG = """([kind, data, name]) => {
    const moved = new DataTransfer();
    if (name) {
        const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
        moved.items.add(new File([bytes], name));
    } else moved.setData("application/x-topology", "gpu");
    document.querySelector("#canvas .tl-stage").dispatchEvent(
        new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: moved }));
}"""


@pytest.fixture
def designer(page, server, drive):
    """The page with nothing kept from before, and a driver of its canvas."""
    page.goto(server[0])
    driver = drive(page)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    return driver


def drag(page, kind, name="", content=b""):
    """Send an event of dragging over the canvas: of a file, or of the palette where none is."""
    page.evaluate(DRAG, [kind, base64.b64encode(content).decode(), name])


def drop(page, name, content=None):
    """Drop a file on the canvas, of the samples unless its content is given."""
    whole = (SAMPLES / name).read_bytes() if content is None else content
    for kind in ("dragenter", "dragover", "drop"):
        drag(page, kind, name, whole)


def press(page, name):
    """Press a button of the dialog that is open."""
    page.get_by_role("dialog").get_by_role("button", name=name).click()


def solve(page):
    """Press Solve once all that was typed is known, and wait for the end."""
    page.keyboard.press("Tab")
    settle(page)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#schedule .ds-banner").wait_for(timeout=SLOW)
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)
    settle(page)


def test_a_machine_is_dropped_asked_about_solved_exported_and_opened_again(designer, tmp_path):
    page = designer.page
    drop(page, "nvidia_smi_switch.txt")
    dialog = page.get_by_role("dialog", name="Import")
    expect(dialog).to_contain_text("nvidia-smi topo -m")
    expect(dialog).to_contain_text("Each of 4 GPUs has NV12 to every other")
    press(page, re.compile("^One NVSwitch"))
    for heading in ("Taken", "Assumed", "Left out"):
        expect(dialog.get_by_role("heading", name=heading)).to_be_visible()

    dialog.get_by_text("Read again with other settings").click()
    expect(dialog.get_by_label("nvlink")).to_have_value("switch")
    dialog.get_by_label("generation").fill("9")
    press(page, "Read again")
    expect(dialog.get_by_role("alert")).to_contain_text("generation")
    dialog.get_by_label("generation").fill("4")
    press(page, "Read again")
    expect(dialog.get_by_role("alert")).to_be_empty()
    expect(dialog.locator(".ds-imp-taken")).to_be_visible()
    expect(page.locator("#counts")).to_contain_text("16 GPUs")

    press(page, "Replace the drawing")
    expect(page.locator("#counts")).to_contain_text("4 GPUs")
    expect(dialog).to_be_hidden()
    speeds = {link["bandwidth"] for link in designer.topology["links"] if "NV" in link["medium"]}
    assert len(speeds) == 1
    designer.keys("Control+z")
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    designer.keys("Control+Shift+z")
    expect(page.locator("#counts")).to_contain_text("4 GPUs")

    page.get_by_label("Chunks per shard").fill("1")  # whole chunks are read back as they are
    solve(page)
    makespan = page.locator(".ds-stat", has_text="makespan").inner_text()
    page.get_by_role("button", name="Export").click()
    page.get_by_text("More formats...").click()
    page.get_by_label("Search formats").fill("msccl xml")
    expect(page.locator(".ds-exp-entry")).to_have_count(1)
    expect(page.locator(".ds-exp-entry")).to_be_enabled(timeout=SLOW)
    page.locator(".ds-exp-entry").click()
    with page.expect_download() as caught:
        press(page, "Download")
    expect(page.locator("#export-done")).to_contain_text("saved")
    written = Path(caught.value.path()).read_bytes()
    assert written.lstrip().startswith(b"<algo")
    page.keyboard.press("Escape")

    drop(page, "again.xml", written)
    dialog.locator("summary").click()
    dialog.get_by_label("size").fill("1MB")
    press(page, "Read again")
    press(page, "Play the plan")
    expect(page.locator("#schedule")).to_contain_text("It came from MSCCL XML")
    expect(page.locator(".ds-stat", has_text="makespan")).to_have_text(
        re.compile(re.escape(makespan.split("\n")[0]))
    )


def test_a_schedule_of_te_ccl_plays_and_is_there_after_a_reload(designer):
    """The file says that it takes three epochs of 100 µs."""
    page = designer.page
    drop(page, "te_ccl_schedule_star.json")
    dialog = page.get_by_role("dialog", name="Import")
    dialog.locator("summary").click()
    dialog.get_by_label("cluster").fill("flows")
    press(page, "Read again")
    expect(dialog).to_contain_text("All-gather of 3 chunks among 3 GPUs")
    press(page, "Play the plan")
    expect(page.locator("#counts")).to_contain_text("3 GPUs")
    expect(page.locator(".ds-stat", has_text="makespan")).to_contain_text("300 µs")
    expect(page.locator("#schedule")).to_contain_text("It came from TE-CCL schedule")
    expect(page.locator("#schedule .ds-stats")).to_contain_text(re.compile("above the .*bound"))
    designer.keys("Home", "ArrowRight")
    assert designer.ask("c.clock.time") > 0
    stats = page.locator("#schedule .ds-stats").inner_text()
    page.wait_for_timeout(400)  # the drawing is kept a moment after the last edit
    page.reload()
    expect(page.locator("#schedule")).to_contain_text("It came from TE-CCL schedule", timeout=SLOW)
    assert page.locator("#schedule .ds-stats").inner_text() == stats


def test_a_second_description_is_added_and_channels_are_drawn_over_it(designer):
    page = designer.page
    drop(page, "nvidia_smi_switch.txt")
    press(page, re.compile("^One NVSwitch"))
    press(page, "Replace the drawing")
    expect(page.locator("#counts")).to_contain_text("4 GPUs")
    alone = designer.names
    pairs = designer.pairs
    drop(page, "nccl_cube.xml")
    press(page, "Add to the drawing")
    expect(page.get_by_role("dialog")).to_contain_text("Added to the drawing")
    press(page, "Done")
    assert set(alone) <= set(designer.names)
    assert pairs < designer.pairs

    drop(page, "nccl_channels.xml")
    press(page, "Draw over the cluster")
    legend = page.locator("#canvas .tl-marks")
    expect(legend).to_contain_text("ring 0")
    box = page.get_by_role("region", name="Paths over the drawing")
    box.get_by_label("Which path is shown").first.click()
    page.get_by_role("option", name="ring 1").click()
    expect(legend).not_to_contain_text("ring 0")
    box.get_by_role("button", name="Hide the paths").click()
    expect(legend).to_be_hidden()
    expect(box).to_be_hidden()


def test_what_is_no_file_of_any_format_changes_nothing_and_the_palette_shows_no_veil(designer):
    page = designer.page
    before = designer.topology
    veil = page.locator(".ds-drop[data-on]")
    drag(page, "dragenter")
    expect(veil).to_have_count(0)
    drag(page, "dragenter", "notes.txt", b"hello")
    expect(veil).to_contain_text("Drop a file")
    drag(page, "drop", "notes.txt", b"hello")
    expect(veil).to_have_count(0)
    expect(page.get_by_role("alert").filter(has_text="notes.txt is in none of")).to_be_visible()
    drop(page, "broken.xml", b"<system version='1'><cpu>")
    expect(page.get_by_role("alert").filter(has_text="broken.xml")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert designer.topology == before

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Export").click()
    page.get_by_text("Copy as Python").click()
    expect(page.get_by_role("alert").filter(has_text="on the clipboard")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert 'open_cluster("ndv2")' in copied
    compile(copied, "copied", "exec")
