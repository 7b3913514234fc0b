"""The Designer as a user meets it: drawing, solving, watching, cancelling, files, bad input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SLOW = 90_000
"""ms for a solve on a busy machine."""


@pytest.fixture
def blank(designer):
    """The same with an empty drawing."""
    designer.page.get_by_role("button", name="New").click()
    expect(designer.page.locator("#counts")).to_contain_text("0 GPUs")
    return designer


def solver_processes(server_pid):
    """Return the process ids of the solvers that a server has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(parent) == server_pid and b"formulations" in words:
            found.append(int(entry.name))
    return found


def choose(page, title):
    """Choose a formulation by its title."""
    page.get_by_role("textbox", name="Method").click()
    page.get_by_role("option").filter(has_text=title).first.click()


def open_two_mi250(page):
    """Open a cluster whose solve takes far longer than a test may."""
    choose(page, "TE-CCL: chunks in epochs (MILP)")
    page.get_by_label("Search clusters").fill("MI250")
    expect(page.locator(".ds-cluster", has_text="Ring")).to_have_count(0)
    page.locator(".ds-cluster").first.click()
    page.get_by_role("dialog").get_by_label("Hosts").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Open").click()
    expect(page.locator("#counts")).to_contain_text("32 GPUs")
    expect(page.get_by_role("dialog")).to_be_hidden()


def solve(page):
    """Press Solve and wait for the verdict."""
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#schedule .ds-banner").wait_for(timeout=SLOW)
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)


def test_a_cluster_is_drawn_solved_watched_undone_and_restored(blank):
    page = blank.page
    page.get_by_role("radio", name="InfiniBand NDR").click()
    blank.root.focus()
    blank.keys("g", "g", "g", "g")
    assert len(blank.names) == 4
    first, second, third, fourth = blank.names
    blank.drag(blank.port(first), blank.at(second))
    blank.click(second)
    blank.keys("l")
    for _ in blank.names:
        if blank.ask("c.canvas.pull.over") == third:
            break
        page.keyboard.press("Tab")
    blank.keys("Enter", "Escape")
    assert (second, third) in blank.pairs
    blank.drag(blank.port(third), blank.at(fourth))
    blank.drag(blank.port(fourth), blank.at(first))
    assert len(blank.pairs) == 8
    assert {link["bandwidth"] for link in blank.topology["links"]} == {50}

    expect(page.locator("#counts")).to_contain_text("4 GPUs · 4 links")
    expect(page.locator("#bounds")).to_contain_text("Receive limit of one GPU")
    solve(page)
    expect(page.locator("#schedule")).to_contain_text("Optimal")
    expect(page.locator("#schedule")).to_contain_text("makespan")

    shown = page.locator("#optimum-card .ds-cut[aria-pressed=true]")
    expect(shown).to_have_count(1)
    expect(page.locator("#canvas .tl-note")).to_be_visible()
    shown.click()
    expect(page.locator("#canvas .tl-note")).to_have_count(0)
    page.locator("#bounds .ds-bound", has_text="receive").first.click()
    expect(page.locator("#canvas .tl-note")).to_be_visible()

    blank.keys("Home", "ArrowRight")
    assert blank.ask("c.clock.time") > 0
    blank.keys("Home", " ")
    page.wait_for_function("() => document.querySelector('.tl').__canvas.clock.time > 0.1")
    blank.keys(" ")

    blank.click(fourth)
    blank.keys("Delete")
    expect(page.locator("#schedule")).to_contain_text("Out of date")
    blank.keys("Control+z")
    expect(page.locator("#schedule")).not_to_contain_text("Out of date")
    assert len(blank.pairs) == 8

    page.wait_for_timeout(400)  # the drawing is kept a moment after the last edit
    page.reload()
    blank.page.wait_for_selector(".tl-graph canvas")
    expect(page.locator("#counts")).to_contain_text("4 GPUs · 4 links")
    expect(page.get_by_text("is back as you left it")).to_be_visible()
    expect(page.locator("#schedule")).to_contain_text("Optimal", timeout=SLOW)
    expect(page.get_by_role("img", name=re.compile("gap 0 % at the end$"))).to_be_visible()
    blank.keys("Home", "ArrowRight")
    assert blank.ask("c.clock.time") > 0


@pytest.mark.alone
def test_a_cancel_ends_the_process_within_a_second_and_keeps_the_best(designer, server):
    page = designer.page
    open_two_mi250(page)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.get_by_role("button", name="Cancel", exact=True).wait_for(timeout=SLOW)
    expect(page.locator("#solve")).to_be_hidden()
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    assert len(solver_processes(server[1])) == 1

    page.get_by_role("button", name="Stop", exact=True).click()
    begin = time.monotonic()
    while solver_processes(server[1]):
        assert time.monotonic() - begin < 1
        time.sleep(0.02)
    page.locator("#solve").wait_for(state="visible")
    expect(page.locator("#schedule")).to_contain_text("the best schedule is kept")
    expect(page.locator("#schedule")).to_contain_text("makespan")


def test_a_reload_finds_the_solve_that_runs(designer, server):
    page = designer.page
    open_two_mi250(page)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.get_by_role("button", name="Cancel", exact=True).wait_for(timeout=SLOW)
    page.reload()
    page.wait_for_selector(".tl-graph canvas")
    page.get_by_role("button", name=re.compile("^(Cancel|Stop)$")).click(timeout=SLOW)
    page.locator("#solve").wait_for(state="visible")
    assert solver_processes(server[1]) == []


def series(page, kind):
    """Return the places of the gap plot's line, empty before there is one."""
    return page.locator(f"#gap-plot .gp-{kind}").get_attribute("d") or ""


def test_the_gap_is_drawn_while_the_solve_runs_and_is_accepted(designer, server):
    page = designer.page
    open_two_mi250(page)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    state = page.locator("#progress-line [role=status]")
    expect(state).to_have_text(re.compile(r"^Plan \d+, still solving$"))
    expect(page.locator("#plan-box")).to_be_hidden()
    begun = series(page, "best")
    assert begun.startswith("M")
    assert series(page, "bound").startswith("M")
    assert series(page, "area").endswith("Z")
    page.wait_for_function(
        "(d) => document.querySelector('#gap-plot .gp-best').getAttribute('d') !== d", arg=begun
    )
    plot = page.get_by_role("img", name=re.compile("^Best makespan .* so far$"))
    expect(plot).to_be_visible()
    page.get_by_role("button", name="log t").click()
    expect(page.get_by_role("button", name="log t")).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name=re.compile(r"^Accept [\d.]+ %$")).click()
    page.locator("#solve").wait_for(state="visible")
    assert solver_processes(server[1]) == []
    expect(page.locator("#schedule")).to_contain_text("the best schedule is kept")
    expect(page.get_by_role("img", name=re.compile("at the end$"))).to_be_visible()
    expect(page.locator("#plan-box")).to_be_visible()
    assert (
        page.locator("#solve-box").bounding_box()["y"]
        > (page.locator("#schedule").bounding_box()["y"])
    )


def test_a_schedule_is_played_while_better_ones_are_searched(designer):
    page = designer.page
    open_two_mi250(page)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.wait_for_function(
        "() => document.querySelector('.tl').__canvas.canvas.playback", timeout=SLOW
    )
    designer.keys("ArrowRight")
    assert designer.ask("c.clock.time") > 0
    number = "c.canvas.model.get('scene').take.number"
    first = designer.ask("c.canvas.playback.scene.take.number")
    page.wait_for_function(
        f"(n) => {{ const c = document.querySelector('.tl').__canvas; return {number} > n; }}",
        arg=first,
        timeout=SLOW,
    )
    assert designer.ask("c.canvas.playback.scene.take.number") == first
    page.get_by_role("button", name="Show it").click()
    assert designer.ask("c.canvas.playback.scene.take.number") > first
    assert designer.ask("c.clock.time") > 0
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator("#solve").wait_for(state="visible")


def test_a_gap_that_is_good_enough_ends_the_solve(designer):
    """Any first schedule is within 10,000 % of the bound."""
    page = designer.page
    open_two_mi250(page)
    field = page.get_by_label("Stop when within")
    field.fill("10000")
    field.press("Enter")
    solve(page)
    expect(page.locator("#schedule")).to_contain_text("The requested gap is reached")


def test_the_size_of_the_model_is_told_and_a_large_one_made_smaller(designer):
    page = designer.page
    choose(page, "TE-CCL: chunks in epochs (MILP)")
    expect(page.locator("#sizing")).to_contain_text("variables", timeout=SLOW)
    expect(page.locator("#size-chip")).to_contain_text("vars")
    page.get_by_label("Chunks per shard").fill("64")
    warning = page.locator("#sizing .ds-bad")
    expect(warning).to_contain_text(re.compile("^(Large|Too large): "), timeout=SLOW)
    fewer = page.get_by_role("button", name=re.compile(r"^\d+ chunks? per shard"))
    before = 64
    while warning.count():  # a busy machine has no time to look for enough at once
        chunks = fewer.inner_text().split()[0]
        assert int(chunks) < before
        before = int(chunks)
        fewer.click()
        expect(page.get_by_label("Chunks per shard")).to_have_value(chunks)
        expect(page.get_by_role("button", name=f"{chunks} chunk")).to_have_count(0, timeout=SLOW)
    assert before < 64


def test_a_horizon_that_is_too_small_is_told_in_place_and_put_right(designer):
    page = designer.page
    page.locator(".ds-cluster", has_text="Ring").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Open").click()
    expect(page.locator("#counts")).to_contain_text("8 GPUs")
    choose(page, "TE-CCL: chunks in epochs (MILP)")
    page.get_by_role("button", name="Options of the method").click()
    field = page.get_by_role("dialog").get_by_label("Epochs at most")
    field.fill("1")
    page.wait_for_timeout(2000)  # until the server has it, on a slow machine too
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Solve", exact=True).click()
    expect(page.locator("#fault")).to_contain_text(
        "horizon of 1 epoch", ignore_case=True, timeout=SLOW
    )
    remedy = page.locator("#fault").get_by_role("button", name=re.compile(r"^Use \d+ epochs$"))
    epochs = int(remedy.inner_text().split()[1])
    remedy.click()
    page.locator("#schedule .ds-stats").wait_for(timeout=SLOW)
    expect(page.locator("#fault")).to_be_empty()
    page.locator("#solve").wait_for(state="visible", timeout=SLOW)
    page.get_by_role("button", name="Options of the method").click()
    expect(field).to_have_value(re.compile(rf"^{epochs}\b"))


def download(page, name):
    """Choose an entry of the Export menu and return the file's content."""
    page.get_by_role("button", name="Export").click()
    with page.expect_download(timeout=SLOW) as caught:
        page.get_by_role("menuitem", name=re.compile(f"^{name}")).click()
    return Path(caught.value.path()).read_bytes()


def test_everything_is_exported_and_a_result_comes_back(designer, tmp_path):
    page = designer.page
    solve(page)
    saved = download(page, "Result as JSON")
    assert json.loads(saved)["kind"] == "result"
    rows = download(page, "Transfers as CSV").decode().splitlines()
    assert rows[0].startswith("chunk,src,dst,start_us")
    assert len(rows) > 16
    assert b"<script" in download(page, "Web page")
    assert download(page, "Picture as PNG").startswith(b"\x89PNG")
    assert download(page, "Animation as GIF").startswith(b"GIF89a")

    page.get_by_role("button", name="New").click()
    expect(page.locator("#counts")).to_contain_text("0 GPUs")
    file = tmp_path / "mine.json"
    file.write_bytes(saved)
    page.locator("#upload input[type=file]").set_input_files(file)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    expect(page.locator("#schedule")).to_contain_text("makespan")
    expect(page.locator("#schedule")).not_to_contain_text("Out of date")


def test_the_keyboard_skips_to_the_drawing_and_to_the_schedule(designer):
    page = designer.page
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.classList.contains('tl')")
    page.locator(".ds-skip").last.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "schedule-section"


def test_the_link_load_shows_every_link_when_asked(designer):
    """Two NDv2 hosts have 68 links one way; a row of each is 13 pixels high."""
    page = designer.page
    solve(page)
    more = page.locator("#link-load-all")
    expect(more).to_have_text(re.compile(r"^All \d+$"))
    links = int(more.inner_text().split()[1])
    assert 24 < links <= 68
    more.click()
    expect(more).to_have_text("First 24")
    page.wait_for_function(
        "(h) => document.querySelector('#link-load').offsetHeight >= h", arg=46 + 13 * links
    )


def test_a_saved_drawing_opens_with_its_places(designer, tmp_path):
    page = designer.page
    places = designer.ask("c.drawing.positions")
    with page.expect_download() as caught:
        page.get_by_role("button", name="Save the drawing").click()
    file = tmp_path / "drawing.json"
    file.write_bytes(Path(caught.value.path()).read_bytes())
    page.get_by_role("button", name="New").click()
    expect(page.locator("#counts")).to_contain_text("0 GPUs · 0 links")
    expect(page.locator("#solve")).to_be_disabled()
    page.locator("#upload input[type=file]").set_input_files(file)
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    expect(page.locator("#solve")).to_be_enabled()
    assert designer.ask("c.drawing.positions") == places


def test_a_malformed_file_is_told_in_a_sentence_and_changes_nothing(designer, tmp_path):
    page = designer.page
    file = tmp_path / "broken.json"
    file.write_text('{"format": "topoloom/1", "kind"')
    page.locator("#upload input[type=file]").set_input_files(file)
    expect(page.get_by_role("alert").filter(has_text="broken.json")).to_be_visible()
    expect(page.locator("#counts")).to_contain_text("16 GPUs")
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    page.locator("#upload input[type=file]").set_input_files(file)
    expect(page.get_by_role("alert").filter(has_text="notes.txt")).to_be_visible()


def test_absurd_settings_are_told_in_a_sentence_and_can_be_put_right(designer):
    page = designer.page
    page.get_by_label("Chunks per shard").fill("1000000000")
    expect(page.locator("#trouble")).to_contain_text("16,000,000,000 chunks")
    expect(page.locator("#solve")).to_be_disabled()
    page.get_by_label("Chunks per shard").fill("1")
    expect(page.locator("#trouble")).to_be_empty()
    page.get_by_label("Size of the whole buffer").fill("much")
    expect(page.locator("#trouble")).to_contain_text("much")
    page.get_by_label("Size of the whole buffer").fill("1MB")
    expect(page.locator("#solve")).to_be_enabled()


def test_the_inspector_edits_a_link_and_refuses_what_cannot_be(designer):
    page = designer.page
    designer.do("select", links=[["g0", "g1"]])
    field = page.locator("#inspector").get_by_label("Bandwidth", exact=True)
    field.fill("75")
    field.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.tl').__canvas.drawing.topology.links"
        ".filter((l) => l.bandwidth === 75).length === 2"
    )
    expect(page.locator("#inspector")).to_contain_text("600 Gb/s")
    alpha = page.locator("#inspector").get_by_label("Alpha")
    alpha.fill("-3")
    alpha.press("Enter")
    expect(alpha).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#inspector")).to_contain_text("give 0 µs or more")
    assert min(link["alpha"] for link in designer.topology["links"]) >= 0


def test_a_host_is_repeated_and_joined(designer):
    page = designer.page
    designer.do("select", hosts=["h0"])
    page.get_by_label("Hosts in all").fill("2")
    page.get_by_role("button", name="Repeat host").click()
    expect(page.locator("#counts")).to_contain_text("24 GPUs · 1 switch")


def test_the_table_edits_and_sorts(designer):
    page = designer.page
    page.get_by_text("Table", exact=True).click()
    cell = page.get_by_label("Name of g3", exact=True)
    cell.fill("middle")
    cell.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.tl').__canvas.drawing.topology.devices"
        ".some((d) => d.name === 'middle')"
    )
    head = page.locator("th", has_text="Bandwidth")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    first = page.get_by_label(re.compile("^Bandwidth of")).first
    expect(first).to_have_value("12.5 GB/s")


def test_a_device_is_dragged_from_the_palette(designer):
    page = designer.page
    page.locator("[data-topology=switch]").drag_to(
        page.locator("#canvas .tl-stage"), target_position={"x": 420, "y": 640}
    )
    expect(page.locator("#counts")).to_contain_text("1 switch")


def test_a_gallery_cluster_opens_with_its_parameters_and_can_be_undone(designer):
    page = designer.page
    page.get_by_label("Search clusters").fill("torus")
    expect(page.locator(".ds-cluster", has_text="Ring")).to_have_count(0)
    page.locator(".ds-cluster", has_text="Torus").first.click()
    page.get_by_label("Shape").fill("3x3")
    page.get_by_role("dialog").get_by_role("button", name="Open").click()
    expect(page.locator("#counts")).to_contain_text("9 GPUs")
    designer.keys("Control+z")
    expect(page.locator("#counts")).to_contain_text("16 GPUs")


def test_a_formulation_that_refuses_says_why(designer):
    page = designer.page
    page.get_by_role("textbox", name="Method").click()
    option = page.get_by_role("option").filter(has_text="Unavailable").first
    expect(option).to_contain_text("it supports")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="About", exact=True).click()
    expect(page.locator(".ds-mathematics")).to_contain_text("epoch")
    # The default builds no model of its own, which is told where a size would be.
    expect(page.locator(".ds-about-size")).to_contain_text("no model", timeout=SLOW)


def test_options_are_kept_for_the_next_visit(designer):
    page = designer.page
    limit = page.get_by_label("Time limit")
    limit.fill("7")
    page.wait_for_timeout(600)
    page.reload()
    page.wait_for_selector(".tl-graph canvas")
    expect(page.get_by_label("Time limit")).to_have_value("7 s")


@pytest.mark.parametrize("width", [1100, 1280, 1440, 1920])
def test_nothing_that_floats_above_the_canvas_covers_another(designer, width):
    designer.page.set_viewport_size({"width": width, "height": 720})
    view = designer.page.locator(".ds-view").bounding_box()
    tools = designer.page.get_by_role("toolbar", name="Drawing tools").bounding_box()
    beside = view["x"] + view["width"] + 8 <= tools["x"]
    assert beside or view["y"] + view["height"] + 4 <= tools["y"]
    stage = designer.page.locator("#stage").bounding_box()
    assert tools["x"] + tools["width"] <= stage["x"] + stage["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_visit_follows_the_system_and_the_switch_is_remembered(new_page, server, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(server[0])
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", scheme)
    page.get_by_label("Switch between light and dark").click()
    other = "dark" if scheme == "light" else "light"
    expect(root).to_have_attribute("data-mantine-color-scheme", other)
    page.reload()
    expect(root).to_have_attribute("data-mantine-color-scheme", other)


def test_no_solver_is_left_when_the_server_stops():
    """A server that is killed takes its solvers along: they hang on its pipe."""
    script = (
        "import time\n"
        "from designer.jobs import Jobs\n"
        "from designer.shell.request import Request, problem_of\n"
        "from formulations import start\n"
        "from gallery import open_cluster\n"
        "asked = Request(time_limit=120)\n"
        "Jobs(start).start(problem_of(open_cluster('mi250:hosts=2'), asked), asked)\n"
        "print('running', flush=True)\n"
        "time.sleep(60)\n"
    )
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"running\n"
    (child,) = solver_processes(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()
