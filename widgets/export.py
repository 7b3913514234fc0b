"""One HTML file with the canvas in it: it opens from disk and asks nobody for anything."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from widgets import canvas_file

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>html, body {{ margin: 0; height: 100% }} #canvas {{ height: 100vh }}</style>
<div id="canvas"></div>
<script type="application/json" id="state">{state}</script>
<script type="module">
const bytes = Uint8Array.from(atob("{bundle}"), (letter) => letter.charCodeAt(0));
const address = URL.createObjectURL(new Blob([bytes], {{ type: "text/javascript" }}));
const {{ mount, PlainModel }} = await import(address);
const state = JSON.parse(document.getElementById("state").textContent);
mount(document.getElementById("canvas"), new PlainModel(state));
</script>
</html>
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

    Parameters
    ----------
    drawing, scene, cuts
        As `widgets.scene` makes them.
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
    return _PAGE.format(
        title=html.escape(title),
        # "</script>" inside a name would end the element.
        state=json.dumps(state).replace("<", "\\u003c"),
        bundle=base64.b64encode(canvas_file().read_bytes()).decode(),
    )
