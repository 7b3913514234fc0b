"""Pictures, films and pages among the formats that are written (`interchange.formats.format`).

A page is one HTML file with the canvas in it: it opens from disk and asks nobody for anything. The
canvas and its state are packed with gzip, which browsers since 2023 unpack by themselves. What is
in the body stands there until the canvas does: where scripts do not run it is all there is.
"""

import base64
import difflib
import gzip
import html
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ccl import text
from ccl.errors import CclError, FormatError
from ccl.layout import layout
from ccl.options import option, typed
from ccl.serialization.documents import Document, Kind
from ccl.serialization.topoloom import topology_from_json
from interchange.formats import catalogue
from interchange.formats.format import Report, Writer, Written, one_file, replayed
from widgets import canvas_file
from widgets.print.cutting import Region, strongest
from widgets.print.geometry.stage import Stage
from widgets.print.playback import Moment, Playback
from widgets.print.style import DARK, LIGHT, FilmOptions, PixelOptions, StillOptions
from widgets.print.view import View
from widgets.view_model.scene import cuts, drawing, scene

Theme = Literal["auto", "light", "dark"]

_PAGE = """<!doctype html>
<html lang="en"{theme}>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<meta name="description" content="{about}">
<link rel="icon" href="data:,">
<style>
{style}
</style>
<body>
{body}
<script type="application/gzip" id="state">{state}</script>
<script type="application/gzip" id="canvas">{bundle}</script>
<script type="module">
const unpacked = (id) => {{
  const packed = atob(document.getElementById(id).textContent);
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}};
const state = await unpacked("state").json();
const code = new Blob([await unpacked("canvas").arrayBuffer()], {{ type: "text/javascript" }});
const {{ mount, PlainModel }} = await import(URL.createObjectURL(code));
{script}
</script>
</body>
</html>
"""

_PAGE_STYLE = """
:root { color-scheme: light dark; --bg: #f7f9fb; --text: #17212e; --dim: #566577; --line: #d3dbe4; --surface: #fff; --accent: #1670c9 }
@media (prefers-color-scheme: dark) { :root { --bg: #0f141b; --text: #dfe7ef; --dim: #8e9db0; --line: #334152; --surface: #1a222d; --accent: #4aa3ff } }
:root[data-theme=light] { color-scheme: light; --bg: #f7f9fb; --text: #17212e; --dim: #566577; --line: #d3dbe4; --surface: #fff; --accent: #1670c9 }
:root[data-theme=dark] { color-scheme: dark; --bg: #0f141b; --text: #dfe7ef; --dim: #8e9db0; --line: #334152; --surface: #1a222d; --accent: #4aa3ff }
html, body { margin: 0; height: 100% }
body { background: var(--bg); color: var(--text); font: 14px/1.5 Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
.in-dark { display: none }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) .in-light { display: none } :root:not([data-theme=light]) .in-dark { display: revert } }
:root[data-theme=dark] .in-light { display: none }
:root[data-theme=dark] .in-dark { display: revert }
"""  # noqa: E501  a rule a line


def whole_page(
    title: str,
    body: str,
    state: Mapping[str, Any],
    *,
    script: str,
    style: str,
    about: str,
    theme: str,
) -> str:
    """Return a page.

    Parameters
    ----------
    title, about
        What it shows, in a few words and in a sentence.
    body
        HTML that stands there at first.
    state
        What the script finds in ``state``, plain JSON values.
    script
        JavaScript with ``state``, ``mount`` and ``PlainModel`` at hand.
    style
        CSS, beside that of all pages.
    theme
        ``auto``, ``light`` or ``dark``.

    Raises
    ------
    ImportError
        If the canvas was not built.
    """
    return _PAGE.format(
        title=html.escape(title),
        about=html.escape(about),
        theme="" if theme == "auto" else f' data-theme="{theme}"',
        style=_PAGE_STYLE.strip() + "\n" + style.strip(),
        body=body,
        script=script.strip(),
        state=packed(json.dumps(state, separators=(",", ":")).encode()),
        bundle=packed(canvas_file().read_bytes()),
    )


def packed(content: bytes) -> str:
    """Return bytes as letters that a page unpacks; the same bytes make the same letters."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def in_themes(make: Mapping[str, str], theme: str, *, tag: str = "div") -> str:
    """Return what is drawn for one theme, or for both of which the reader's is shown.

    Parameters
    ----------
    make
        HTML by ``light`` and ``dark``.
    theme
        As for `whole_page`.
    tag
        Of the element around each of two.
    """
    if theme != "auto":
        return make[theme]
    return "".join(f'<{tag} class="in-{name}">{each}</{tag}>' for name, each in make.items())


MOST_STILL = 20_000
"""Transfers of a plan that the picture beside the canvas shows; of more only the cluster."""
MOST_CELLS = 2_000
"""Chunks of all devices in that picture: each is a shape in the page."""

_STYLE = """
#canvas { height: 100vh }
#still { box-sizing: border-box; min-height: 100vh; padding: 16px; display: grid; grid-template-rows: auto 1fr; justify-items: center; align-items: center; gap: 8px; text-align: center }
#still h1 { margin: 0; font-size: 16px }
#still p { margin: 2px 0 0; color: var(--dim) }
#still svg { max-width: 100%; height: auto; max-height: calc(100vh - 120px) }
"""  # noqa: E501  a rule a line
_SCRIPT = """
document.getElementById("still").remove();
const element = document.createElement("div");
element.id = "canvas";
document.body.prepend(element);
mount(element, new PlainModel(state));
"""


def standalone_html(
    drawing: Mapping[str, Any],
    scene: Mapping[str, Any] | None = None,
    cuts: Sequence[Mapping[str, Any]] = (),
    *,
    theme: str = "auto",
    toolbar: bool = True,
) -> str:
    """Return a page that shows a drawing and plays its scene.

    Where no script runs it shows a picture, half-way through the plan, and says what it is of.

    Parameters
    ----------
    drawing, scene, cuts
        As `widgets.view_model.scene` makes them.
    theme
        ``auto``, ``light`` or ``dark``.
    toolbar
        Whether it can be edited with the floating tools.

    Raises
    ------
    ImportError
        If the canvas was not built.
    """
    state = {
        "drawing": drawing,
        "scene": scene,
        "cuts": list(cuts),
        "theme": theme,
        "toolbar": toolbar,
        "height": "100vh",
    }
    title = scene["title"] if scene else drawing["topology"]["name"]
    about = _about(drawing, scene, cuts)
    return whole_page(
        title,
        still(title, about, in_themes(pictures(drawing, scene, cuts), theme)),
        state,
        script=_SCRIPT,
        style=_STYLE,
        about=about,
        theme=theme,
    )


def still(title: str, about: str, picture: str) -> str:
    """Return what stands in a page until the canvas does."""
    words = (
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>"
        "<noscript><p>Allow scripts to play it; nothing is fetched from anywhere.</p></noscript>"
    )
    return f'<main id="still"><div>{words}</div><div>{picture}</div></main>'


def pictures(
    drawing: Mapping[str, Any],
    scene: Mapping[str, Any] | None,
    cuts: Sequence[Mapping[str, Any]],
    *,
    width: float = 1100.0,
) -> dict[str, str]:
    """Return a drawing as SVG by theme, with what its plan does half-way; empty if there is none.

    Parameters
    ----------
    drawing, scene, cuts
        As `widgets.view_model.scene` makes them.
    width
        In pixels.
    """
    from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib

    try:
        topology = topology_from_json(dict(drawing["topology"]))
    except CclError:  # it can be edited in the page until it is one
        return {"light": "", "dark": ""}
    places = {name: (x, y) for name, (x, y) in drawing["positions"].items()}
    stage = Stage.of(topology, places)
    cut = strongest([dict(each) for each in cuts])
    moment = None
    if scene is not None and _drawn(scene):
        playback = Playback(scene)
        moment = Moment(playback, playback.makespan / 2)
    made = {}
    for name, look in (("light", LIGHT), ("dark", DARK)):
        region = None if cut is None else Region(stage, cut)
        view = View(stage, look, width=width, region=region, filled=moment is not None)
        made[name] = svg(view.picture(moment))
    return made


def _drawn(scene: Mapping[str, Any]) -> bool:
    """Whether a picture of a plan half-way is small enough."""
    transfers = scene.get("transfers")
    if not transfers or len(transfers) > MOST_STILL:
        return False
    devices = sum(each["kind"] == "gpu" for each in scene["topology"]["devices"])
    return bool(devices * len(scene["chunks"]) <= MOST_CELLS)


def _about(
    drawing: Mapping[str, Any], scene: Mapping[str, Any] | None, cuts: Sequence[Mapping[str, Any]]
) -> str:
    """Say in a sentence what a page shows."""
    topology = drawing["topology"]
    gpus = sum(each["kind"] == "gpu" for each in topology["devices"])
    links = len(topology["links"])
    parts = [f"{text.count(gpus, 'GPU')}, {text.count(links, 'link')} one way each"]
    if scene is not None and "makespan" in scene:
        parts.append(f"the plan takes {text.duration(scene['makespan'])}")
    proved = max((each["makespan"] for each in cuts), default=None)
    if proved is not None:
        parts.append(f"a cut proves that none takes less than {text.duration(proved)}")
    return f"{'; '.join(parts)}."


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Of a page."""

    theme: Literal["auto", "light", "dark"] = option(
        "auto", "Theme", "auto is as the reader's browser asks for."
    )


def write_page(content: Document, options: PageOptions) -> Written:
    """Write a page that shows the drawing and, if there is a plan, plays it."""
    places = {**layout(content.topology), **content.positions}
    drawn = drawing(content.topology, places)
    played = None if content.plan is None else scene(*replayed(content))
    proved = () if content.result is None else cuts(content.result.bounds)
    try:
        return one_file(standalone_html(drawn, played, proved, theme=options.theme), ending="html")
    except ImportError as error:
        raise FormatError(str(error)) from None  # the canvas was not built, and it says how


def _painted(name: str) -> Callable[[Document, Any], Written]:
    """Return the writer called so; its painter loads matplotlib, which waits until one is used."""

    def write(content: Document, options: Any) -> Written:
        from widgets.print.film import PAINTERS  # noqa: PLC0415 - as said

        return PAINTERS[name](content, options)

    return write


WRITERS = (
    Writer("html", "Page that plays, from disk", "html", "topology", write_page, PageOptions),
    Writer("svg", "Picture, SVG", "svg", "topology", _painted("svg"), StillOptions),
    Writer("png", "Picture, PNG", "png", "topology", _painted("png"), PixelOptions),
    Writer("pdf", "Picture for print, PDF", "pdf", "topology", _painted("pdf"), StillOptions),
    Writer("gif", "Animation, GIF", "gif", "plan", _painted("gif"), FilmOptions),
    Writer("webm", "Animation, WebM", "webm", "plan", _painted("webm"), FilmOptions),
)


KINDS: tuple[Kind, ...] = ("topology", "problem", "plan", "result")


@cache
def writers() -> tuple[Writer, ...]:
    """Return all writers by name: those of formats, and pictures and pages."""
    return tuple(sorted((*catalogue.writers(), *WRITERS), key=lambda each: each.name))


def writer(name: str) -> Writer:
    """Return the writer called `name`.

    Raises
    ------
    FormatError
        If there is none.
    """
    found = {each.name: each for each in writers()}
    if name not in found:
        close = difflib.get_close_matches(name, found, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}" if close else f"there are {', '.join(found)}"
        raise FormatError(f"no format called {name!r} is written; {hint}")
    return found[name]


def fitting(kind: Kind) -> tuple[Writer, ...]:
    """Return the writers that a document of a kind is enough for."""
    return tuple(each for each in writers() if KINDS.index(each.needs) <= KINDS.index(kind))


def write(content: Document, name: str, settings: Mapping[str, str]) -> Written:
    """Write a document in a format, told options as typed.

    Raises
    ------
    CclError
        If there is no such format or option, or it cannot say what the document holds.
    """
    found = writer(name)
    if KINDS.index(found.needs) > KINDS.index(content.kind):
        what = {"problem": "a problem or a plan", "plan": "a plan", "result": "a result"}
        raise FormatError(
            f"a {content.kind} document is not enough for {found.title}, which needs "
            f"{what[found.needs]}; solve it first"
        )
    return found.write(content, typed(found.options, settings))


def zipped(written: Written) -> bytes:
    """Return several files as one archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in written.files.items():
            archive.writestr(zipfile.ZipInfo(name), each)
    return content.getvalue()


def sentences(report: Report) -> list[str]:
    """Return a report as sentences that say which kind each is."""
    return [
        *(f"taken: {each}" for each in report.taken),
        *(f"assumed: {each}" for each in report.assumed),
        *(f"left out: {each}" for each in report.left_out),
    ]
