"""One HTML file with the canvas in it: it opens from disk and asks nobody for anything."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from ccl.errors import CclError
from ccl.serialization.topoloom import topology_from_json
from widgets import text
from widgets.pages.page import in_themes, whole_page

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
        As `widgets.shown.scene` makes them.
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
    """Return a drawing as SVG by theme, with what its plan does half-way; empty if it is none.

    Parameters
    ----------
    drawing, scene, cuts
        As `widgets.shown.scene` makes them.
    width
        In pixels.
    """
    from widgets.pictures.colors import DARK, LIGHT  # noqa: PLC0415 - it loads Pillow
    from widgets.pictures.cutting import Region, strongest  # noqa: PLC0415
    from widgets.pictures.moving import Moment  # noqa: PLC0415
    from widgets.pictures.playback import Playback  # noqa: PLC0415
    from widgets.pictures.stage import Stage  # noqa: PLC0415
    from widgets.pictures.svg import svg  # noqa: PLC0415
    from widgets.pictures.view import View  # noqa: PLC0415

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
    drawing: Mapping[str, Any],
    scene: Mapping[str, Any] | None,
    cuts: Sequence[Mapping[str, Any]],
) -> str:
    """Say in a sentence what a page shows."""
    topology = drawing["topology"]
    gpus = sum(each["kind"] == "gpu" for each in topology["devices"])
    links = len(topology["links"])
    parts = [f"{gpus:,} GPU{'s' * (gpus != 1)}, {links:,} link{'s' * (links != 1)} one way each"]
    if scene is not None and "makespan" in scene:
        parts.append(f"the plan takes {text.duration(scene['makespan'])}")
    proved = max((each["makespan"] for each in cuts), default=None)
    if proved is not None:
        parts.append(f"a cut proves that none takes less than {text.duration(proved)}")
    return f"{'; '.join(parts)}."
