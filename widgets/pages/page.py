"""The frame of a page that opens from disk: the canvas in it, what it shows, and no request.

The canvas and its state are packed with gzip, which browsers since 2023 unpack by themselves. What
is in the body stands there until the canvas does: where scripts do not run it is all there is.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping
from typing import Any, Literal

from widgets import canvas_file

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

_STYLE = """
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
        style=_STYLE.strip() + "\n" + style.strip(),
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
