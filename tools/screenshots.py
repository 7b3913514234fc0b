"""Start the designer and take the pictures of docs/images.

    python tools/screenshots.py [folder [light dark ...]]

1440 x 900: light, dark, empty, solved, solving, error, compared, in step, four in step, imported,
large clusters, the inspector, What if, the wizard, proposed networks, presented to a class; on
small screens; and, of a server that has a sweep and a catalog, the rows and the plans.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.chromium import chromium  # noqa: E402  the repository is on the path only now

SERVE = """
import sys
from designer.app import serve
serve(None, host="127.0.0.1", port=int(sys.argv[1]), open_browser=False)
"""
COMMAND = "import sys; from designer.cli import main; main(sys.argv[1:])"
NIGHT = """\
clusters: [dgx-1v, "dgx-a100:hosts=[1,2]", ndv2]
collectives: [all-gather, all-to-all]
sizes: [1KB..100MB x10]
formulations: [list, ring]
time_limit: 10
"""
"""The sweep whose rows are shown."""
PATIENCE = 120_000
"""ms for a solve on a busy machine."""

MATRIX = """\
     GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 NIC0 NIC1 NIC2 NIC3 CPU Affinity  NUMA Affinity
GPU0 X    NV12 NV12 NV12 NV12 NV12 NV12 NV12 PXB  NODE SYS  SYS  0-63          0
GPU1 NV12 X    NV12 NV12 NV12 NV12 NV12 NV12 PXB  NODE SYS  SYS  0-63          0
GPU2 NV12 NV12 X    NV12 NV12 NV12 NV12 NV12 NODE PXB  SYS  SYS  0-63          0
GPU3 NV12 NV12 NV12 X    NV12 NV12 NV12 NV12 NODE PXB  SYS  SYS  0-63          0
GPU4 NV12 NV12 NV12 NV12 X    NV12 NV12 NV12 SYS  SYS  PXB  NODE 64-127        1
GPU5 NV12 NV12 NV12 NV12 NV12 X    NV12 NV12 SYS  SYS  PXB  NODE 64-127        1
GPU6 NV12 NV12 NV12 NV12 NV12 NV12 X    NV12 SYS  SYS  NODE PXB  64-127        1
GPU7 NV12 NV12 NV12 NV12 NV12 NV12 NV12 X    SYS  SYS  NODE PXB  64-127        1
NIC0 PXB  PXB  NODE NODE SYS  SYS  SYS  SYS  X    NODE SYS  SYS
NIC1 NODE NODE PXB  PXB  SYS  SYS  SYS  SYS  NODE X    SYS  SYS
NIC2 SYS  SYS  SYS  SYS  PXB  PXB  NODE NODE SYS  SYS  X    NODE
NIC3 SYS  SYS  SYS  SYS  NODE NODE PXB  PXB  SYS  SYS  NODE X
"""
"""What nvidia-smi topo -m prints on a host of eight A100s, as we would lay one out."""


@contextmanager
def keeping() -> Iterator[str]:
    """Run a sweep, serve its rows and a catalog that is empty, and yield the address."""
    with tempfile.TemporaryDirectory() as folder:
        night, plans = Path(folder, "night.yaml"), Path(folder, "plans.sqlite")
        night.write_text(NIGHT)
        subprocess.run([sys.executable, "-c", COMMAND, "sweep", str(night)], cwd=ROOT, check=True)
        more = ("--sweep", str(night.with_suffix(".sweep")), "--catalog", str(plans))
        with designer(COMMAND, "design", "--no-browser", *more, "--port") as address:
            yield address


@contextmanager
def designer(code: str = SERVE, *before: str) -> Iterator[str]:
    """Serve the designer and yield its address; the port is the last argument."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", code, *before, str(port)], cwd=ROOT)
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def solved(page: Page) -> None:
    """Solve what is open and stop the film in its third epoch."""
    page.click("#solve")
    page.locator("#schedule .ds-stats").wait_for(state="attached", timeout=PATIENCE)
    page.locator("#solve").wait_for(state="visible", timeout=PATIENCE)
    page.locator("#link-load .main-svg").first.wait_for(state="attached", timeout=PATIENCE)
    canvas = "document.querySelector('.tl').__canvas"
    page.evaluate(
        f"() => {{ const c = {canvas}; c.cmd('pause');"
        " c.cmd('seek', {time: 2.45 * c.canvas.playback.scene.epoch_duration}); }"
    )


def open_cluster(page: Page, name: str, *, counted: str, **parameters: int) -> None:
    """Open a cluster of the gallery and wait until the header counts what it has."""
    page.fill("#gallery-search", name)
    page.locator(".ds-cluster", has_text="Ring").wait_for(state="detached")
    page.locator(".ds-cluster").first.click()
    dialog = page.get_by_role("dialog")
    for label, value in parameters.items():
        dialog.get_by_label(label).fill(str(value))
    dialog.get_by_role("button", name="Open").click()
    page.locator("#counts", has_text=counted).wait_for()
    dialog.wait_for(state="hidden")
    page.fill("#gallery-search", "")
    page.wait_for_timeout(1500)


def a_cluster(page: Page) -> None:
    """Solve a torus, one link selected."""
    open_cluster(page, "torus", counted="16 GPUs · 32 links")
    solved(page)
    page.evaluate(
        "() => { const c = document.querySelector('.tl').__canvas;"
        " const l = c.drawing.topology.links[0]; c.cmd('select', {links: [[l.src, l.dst]]}); }"
    )


def empty(page: Page) -> None:
    """Show what a new drawing looks like."""
    page.get_by_role("button", name="New").click()


def solving(page: Page) -> None:
    """Catch a long solve in its course."""
    open_cluster(page, "MI250", counted="32 GPUs", Hosts=2)
    page.click("#solve")
    page.locator("#schedule .ds-stats").wait_for(timeout=PATIENCE)
    page.locator("#gap-plot svg").wait_for(timeout=PATIENCE)
    page.wait_for_timeout(15_000)


def compared(page: Page) -> None:
    """Compare the quick methods of an all-reduce on a DGX-1 with V100."""
    open_cluster(page, "DGX-1V", counted="8 GPUs · 16 links")
    page.locator("#collective").click()
    page.get_by_role("option", name="All-reduce").click()
    page.wait_for_timeout(1500)
    page.locator("#view").get_by_text("Compare").click()
    page.get_by_label("Sizes").fill("1KB to 100MB by 10")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator("#compare-status", has_text="Finished").wait_for(timeout=PATIENCE)
    page.locator("#compare-pane .main-svg").first.wait_for(timeout=PATIENCE)


def in_step(page: Page) -> None:
    """Stop two of the compared schedules on their way."""
    compared(page)
    _watch(page, "Side by side")


def four_in_step(page: Page) -> None:
    """Stop four of them: the fastest of the largest size."""
    compared(page)
    ticks = page.get_by_role("checkbox", name="at 100 MB in step")
    for place in range(4):
        ticks.nth(place).check()
    _watch(page, "Watch 4 in step")


def _watch(page: Page, button: str) -> None:
    page.get_by_role("button", name=button).click()
    pair = "document.querySelector('.tlp').__pair"
    page.wait_for_function(f"() => {pair}?.sides.every((side) => side.playback)")
    page.evaluate(
        f"() => {{ const lead = {pair}.lead; lead.toggle(false); lead.seek(0.4 * lead.end); }}"
    )


def imported(page: Page) -> None:
    """Show what was made of the matrix of a machine before it replaces the drawing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "dgx-a100.txt")
        file.write_text(MATRIX)
        page.locator("#upload input[type=file]").set_input_files(file)
        dialog = page.get_by_role("dialog", name="Import")
        dialog.get_by_role("button", name="One NVSwitch").click()
        dialog.locator(".ds-imp-assumed").wait_for()


def error(page: Page) -> None:
    """Ask for the impossible and open a broken file."""
    page.get_by_label("Chunks per shard").fill("99999")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cluster.json")
        file.write_text('{"format": "topoloom/1", "kind": "topology", "topology": {"name": 7}}')
        page.locator("#upload input[type=file]").set_input_files(file)
        page.get_by_role("alert").filter(has_text="cluster.json").wait_for()
    page.locator("#trouble", has_text="chunks").wait_for()


def large(name: str, counted: str, **parameters: int) -> Callable[[Page], None]:
    """Show a large cluster, the columns of the page hidden."""

    def prepare(page: Page) -> None:
        open_cluster(page, name, counted=counted, **parameters)
        page.locator(".tl-graph canvas").first.click(position={"x": 5, "y": 200})
        page.keyboard.press("[")
        page.keyboard.press("]")
        page.wait_for_timeout(800)
        page.keyboard.press("f")

    return prepare


def racks(page: Page) -> None:
    """Fold 1,024 GPUs into racks."""
    large("DGX H100", "1024 GPUs", Hosts=128)(page)
    page.get_by_role("button", name="Fold racks").click()


def presented(page: Page) -> None:
    """Present an all-reduce on a ring to a class, the answer hidden."""
    open_cluster(page, "DGX A100", counted="8 GPUs", Hosts=1)
    page.locator("#collective").click()
    page.get_by_role("option", name="All-reduce").click()
    page.locator("#formulation").click()
    page.get_by_role("option").filter(has_text="Ring").first.click()
    page.wait_for_timeout(1500)
    solved(page)
    page.evaluate(
        "() => { const c = document.querySelector('.tl').__canvas;"
        " c.cmd('present'); c.cmd('step', {by: 1, of: 'step'}); }"
    )


def inspected(page: Page) -> None:
    """Follow a whole chunk in the inspector below the player."""
    page.locator("#formulation").click()
    page.get_by_role("option").filter(has_text="List scheduling").first.click()
    page.wait_for_timeout(1500)
    solved(page)
    page.evaluate(
        "() => { const c = document.querySelector('.tl').__canvas; c.cmd('seek', {time: 0});"
        " c.cmd('inspect'); c.canvas.inspector.look({chunk: 3}); }"
    )


def what_if(page: Page) -> None:
    """Widen NVLink and double the network of two hosts."""
    open_cluster(page, "DGX A100", counted="16 GPUs", Hosts=2)
    page.locator("#view").get_by_text("What if").click()
    page.locator("#whatif-figures", has_text="GB/s").wait_for(timeout=PATIENCE)
    for medium, times in (("NVLink 3", 6), ("InfiniBand HDR", 20)):
        page.get_by_role("slider", name=f"Bandwidth of {medium}").first.focus()
        for _ in range(times):
            page.keyboard.press("ArrowRight")
    page.locator("#whatif-figures", has_text="+").wait_for(timeout=PATIENCE)
    page.locator("#whatif-canvas .tl-note").first.wait_for(timeout=PATIENCE)
    page.wait_for_timeout(8000)


def wizard(page: Page) -> None:
    """Describe 32 hosts on eight rails by numbers."""
    page.locator("#wizard-button").click()
    dialog = page.get_by_role("dialog", name="Hosts, leaves")
    numbers = {"Hosts": 32, "GPUs in each": 8, "NICs in each host": 8, "Radix of a leaf": 32}
    numbers |= {"Radix of a spine": 64, "Oversubscription": 3}
    for label, number in numbers.items():
        dialog.get_by_label(label, exact=True).fill(str(number))
    dialog.get_by_role("status").filter(has_text="256 GPUs").wait_for(timeout=PATIENCE)


def proposed(page: Page) -> None:
    """Propose networks of 64 GPUs with 4 ports each, and compare the best two."""
    page.locator("#view").get_by_text("Propose").click()
    page.locator("#propose-run").click()
    page.locator("#propose-status", has_text="Finished").wait_for(timeout=PATIENCE)
    for place in range(2):
        page.locator(".ds-pro-card input").nth(place).check()
    page.locator(".ds-pro-beside").wait_for(timeout=PATIENCE)


def sweeps(page: Page) -> None:
    """Show the best row of each cluster, collective and size of a sweep."""
    page.locator("#view").get_by_text("Sweeps").click()
    page.locator(".ds-swp-table tbody tr").first.wait_for(timeout=PATIENCE)
    page.locator("#sweep-plot .main-svg").first.wait_for(timeout=PATIENCE)


def catalog(page: Page) -> None:
    """Show what is kept of a comparison."""
    compared(page)
    page.locator("#view").get_by_text("Catalog").click()
    page.locator("#catalog-pane .ds-sto-table tbody tr").first.wait_for(timeout=PATIENCE)
    page.locator("#catalog-pane .main-svg").first.wait_for(timeout=PATIENCE)


class Picture(NamedTuple):
    """A file, its colours, what is done first, the window's size, whether plans are kept."""

    name: str
    scheme: str
    prepare: Callable[[Page], None]
    size: tuple[int, int] = (1440, 900)
    kept: bool = False


PICTURES = (
    Picture("light", "light", solved),
    Picture("dark", "dark", solved),
    Picture("empty", "dark", empty),
    Picture("solved", "dark", a_cluster),
    Picture("solving", "light", solving),
    Picture("error", "light", error),
    Picture("compared", "light", compared),
    Picture("in-step", "dark", in_step),
    Picture("four-in-step", "dark", four_in_step),
    Picture("imported", "light", imported),
    Picture("rails", "dark", large("DGX A100", "128 GPUs", Hosts=16)),
    Picture("large-nvl72", "light", large("GB200 NVL72", "72 GPUs")),
    Picture("large-torus", "light", large("TPU v4", "64 GPUs")),
    Picture("large-mi250", "dark", large("MI250", "64 GPUs", Hosts=4)),
    Picture("large-fat-tree", "light", large("Fat-tree", "128 GPUs", Radix=8)),
    Picture("large-thousand", "dark", large("DGX H100", "1024 GPUs", Hosts=128)),
    Picture("large-racks", "light", racks),
    Picture("inspector", "light", inspected),
    Picture("what-if", "light", what_if),
    Picture("wizard", "light", wizard),
    Picture("proposed", "light", proposed),
    Picture("presented", "dark", presented),
    Picture("narrow", "light", solved, (1024, 700)),
    Picture("phone", "dark", solved, (390, 844)),
    Picture("sweeps", "light", sweeps, kept=True),
    Picture("catalog", "light", catalog, kept=True),
)


def take(browser: Browser, address: str, picture: Picture) -> bytes:
    """Return one picture of a fresh visit."""
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=picture.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(address)
    page.locator(".tl-graph canvas").first.wait_for()
    page.locator("#bounds .ds-bound").first.wait_for(state="attached", timeout=PATIENCE)
    picture.prepare(page)
    page.wait_for_timeout(1200)
    made = page.screenshot()
    if page.locator("#cancel").is_visible():
        page.click("#cancel")
        page.locator("#solve").wait_for(state="visible")
    context.close()
    return made


def main(folder: Path, only: Sequence[str]) -> None:
    """Take every picture, or some."""
    folder.mkdir(parents=True, exist_ok=True)
    for serve, kept in ((designer, False), (keeping, True)):
        wanted = [e for e in PICTURES if e.kept == kept and (not only or e.name in only)]
        if not wanted:
            continue
        with serve() as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
            )
            for each in wanted:
                (folder / f"{each.name}.png").write_bytes(take(browser, address, each))
                print(folder / f"{each.name}.png")
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images", sys.argv[2:])
