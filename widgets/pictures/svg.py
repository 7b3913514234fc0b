"""A picture as SVG text: nothing is asked of anybody, and every device and link is named.

Colours as on the canvas (`widgets/js/src/style.js`), and one look more for print.

Identity by the palette of Okabe and Ito, "Color Universal Design" (2008), safe for colour-blind
readers; vermillion is kept for bottlenecks alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from widgets.pictures.axes import Area, Box, Dot, Picture, Point, Rect, Shape, Stroke, Words

FONTS = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


def svg(picture: Picture, *, column: float | None = None) -> str:
    """Return a picture as the text of a file; in print it is `column` mm wide, where it is given.

    Names stay texts, which can be searched, copied and set in the font of the page around them.
    """
    frame = picture.frame
    width, height = map(str, picture.size)
    if column is not None:
        width, height = f"{_n(column)}mm", f"{_n(column * frame.height / frame.width)}mm"
    box = f"{_n(frame.x1)} {_n(frame.y1)} {_n(frame.width)} {_n(frame.height)}"
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
            f'viewBox="{box}" font-family="{FONTS}">'
        ),
        f"<title>{_text(picture.title)}</title>",
        f"<desc>{_text(picture.about)}</desc>",
        *_ground(picture),
        *_shapes(picture.shapes),
        "</svg>\n",
    ]
    return "\n".join(lines)


def _ground(picture: Picture) -> Iterator[str]:
    ground, frame = picture.ground, picture.frame
    yield f"<rect {_place(frame)} fill={quoteattr(ground.color)}/>"
    if ground.dots:
        pitch = _n(ground.pitch)
        yield (
            f'<pattern id="dots" width="{pitch}" height="{pitch}" patternUnits="userSpaceOnUse">'
            f'<circle cx="{_n(ground.pitch / 2)}" cy="{_n(ground.pitch / 2)}" '
            f'r="{_n(ground.radius)}" fill="{ground.dots}"/></pattern>'
        )
        yield f'<rect {_place(frame)} fill="url(#dots)"/>'


def _shapes(shapes: Iterable[Shape]) -> Iterator[str]:
    """Write shapes; lines of one style that follow one another share it."""
    for style, group in itertools.groupby(shapes, key=_style):
        if not style:
            yield from (_shape(each) for each in group)
            continue
        yield f"<g {style}>"
        yield from (_shape(each) for each in group)
        yield "</g>"


def _style(shape: Shape) -> str:
    if isinstance(shape, Stroke):
        cap = ' stroke-linecap="round"' if shape.round and not shape.dash else ""
        return (
            f'fill="none" stroke="{shape.color}" stroke-width="{_n(shape.width)}"'
            f"{_opacity('stroke-opacity', shape.opacity)}{cap}{_dash(shape.dash)}"
        )
    if isinstance(shape, Words):
        return (
            f'text-anchor="{shape.anchor}" font-size="{_n(shape.size)}" fill="{shape.color}"'
            + ' font-weight="600"' * shape.bold
        )
    return ""


@singledispatch
def _shape(shape: Shape) -> str:
    raise TypeError(shape)


@_shape.register
def _(shape: Stroke) -> str:
    return _element("path", f'd="{_path(shape)}"', shape.title)


@_shape.register
def _(shape: Area) -> str:
    path = "".join(f"M{_join(loop)}Z" for loop in shape.loops)
    opacity = _opacity("fill-opacity", shape.opacity)
    return f'<path d="{path}" fill="{shape.fill}" fill-rule="evenodd"{opacity}/>'


@_shape.register
def _(shape: Box) -> str:
    words = f'{_place(shape.rect)} fill="{shape.fill}"'
    if shape.radius:
        words += f' rx="{_n(shape.radius)}"'
    if shape.line:
        words += f' stroke="{shape.line}" stroke-width="{_n(shape.width)}"{_dash(shape.dash)}'
    return _element("rect", words + _opacity("fill-opacity", shape.opacity), shape.title)


@_shape.register
def _(shape: Dot) -> str:
    x, y = shape.at
    line = f' stroke="{shape.line}" stroke-width="{_n(shape.width)}"' if shape.line else ""
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(shape.radius)}" fill="{shape.fill}"{line}/>'


@_shape.register
def _(shape: Words) -> str:
    x, y = shape.at
    fitted = ""
    if shape.wide:
        fitted = f' textLength="{_n(shape.wide)}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{_n(x)}" y="{_n(y)}"{fitted}>{_text(shape.text)}</text>'


def _element(tag: str, words: str, title: str) -> str:
    if not title:
        return f"<{tag} {words}/>"
    return f"<{tag} {words}><title>{_text(title)}</title></{tag}>"


def _path(shape: Stroke) -> str:
    if shape.curved:
        start, middle, end = shape.points
        return f"M{_join([start])}Q{_join([middle, end])}"
    return f"M{_join(shape.points)}{'Z' * shape.closed}"


def _join(points: Iterable[Point]) -> str:
    return " ".join(f"{_n(x)} {_n(y)}" for x, y in points)


def _place(rect: Rect) -> str:
    return (
        f'x="{_n(rect.x1)}" y="{_n(rect.y1)}" width="{_n(rect.width)}" height="{_n(rect.height)}"'
    )


def _dash(dash: tuple[float, ...]) -> str:
    return f' stroke-dasharray="{" ".join(map(_n, dash))}"' if dash else ""


def _opacity(name: str, value: float) -> str:
    return "" if value >= 1 else f' {name}="{_n(value)}"'


def _n(value: float) -> str:
    """Write a number with three decimals at most; no picture shows more."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _text(text: str) -> str:
    """Write a text without signs that XML cannot hold."""
    return escape("".join(each if each.isprintable() else " " for each in text))


Theme = Literal["light", "dark"]

OKABE_ITO = (
    "#56b4e9",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#f0e442",
    "#0072b2",
    "#9ad1f5",
    "#b39ddb",
)
"""Colours of up to eight origins."""

RAMP = ("#3d5aa0", "#4682be", "#56b4e9", "#78c8b4", "#b4cd78", "#f0c850", "#f0aa3c")
"""Of more than eight, from the first to the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Colours of everything, and whether it is for print: thin lines and nothing to please."""

    bg: str
    dot: str
    text: str
    dim: str
    surface: str
    raised: str
    box: str
    box_line: str
    gpu: str
    switch: str
    memory: str
    nic: str
    link: str
    cut: str
    on_cut: str
    cut_fill: float
    empty: str
    accent: str
    track: str
    paper: bool = False

    def device(self, kind: str) -> str:
        """Colour of the border of a kind of device."""
        return {
            "gpu": self.gpu,
            "switch": self.switch,
            "memory": self.memory,
            "nic": self.nic,
        }[kind]


DARK = Look(
    bg="#0f141b",
    dot="#1d2631",
    text="#dfe7ef",
    dim="#8e9db0",
    surface="#1a222d",
    raised="#202b38",
    box="#151c26",
    box_line="#2f3e50",
    gpu="#4aa3ff",
    switch="#2dc7b0",
    memory="#e0b64f",
    nic="#b69cff",
    link="#62748a",
    cut="#ff7a50",
    on_cut="#1c0c05",
    cut_fill=0.086,
    empty="#2a3645",
    accent="#4aa3ff",
    track="#202b38",
)
LIGHT = Look(
    bg="#f7f9fb",
    dot="#d9e1ea",
    text="#17212e",
    dim="#566577",
    surface="#ffffff",
    raised="#ffffff",
    box="#eef2f7",
    box_line="#c3cfdb",
    gpu="#1670c9",
    switch="#0c8f7d",
    memory="#946d06",
    nic="#6f4fd1",
    link="#7a8a9c",
    cut="#c45500",
    on_cut="#ffffff",
    cut_fill=0.07,
    empty="#e2e8ef",
    accent="#1670c9",
    track="#dde5ee",
)
PAPER = Look(
    bg="#ffffff",
    dot="",
    text="#000000",
    dim="#444444",
    surface="#ffffff",
    raised="#f2f2f2",
    box="#ffffff",
    box_line="#8a8a8a",
    gpu="#1f1f1f",
    switch="#1f1f1f",
    memory="#1f1f1f",
    nic="#1f1f1f",
    link="#5c5c5c",
    cut="#c45500",
    on_cut="#ffffff",
    cut_fill=0.0,
    empty="#ebebeb",
    accent="#1670c9",
    track="#ebebeb",
    paper=True,
)


def origin_color(index: int, origins: int) -> str:
    """Return the colour of what began at an origin, of which there are so many."""
    if origins <= len(OKABE_ITO):
        return OKABE_ITO[index]
    at = index / (origins - 1) * (len(RAMP) - 1)
    step = min(len(RAMP) - 2, int(at))
    return between(RAMP[step], RAMP[step + 1], at - step)


def between(start: str, end: str, share: float) -> str:
    """Return the colour so far on the way from one to another."""
    mixed = (round(a + (b - a) * share) for a, b in zip(rgb(start), rgb(end), strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def rgb(color: str) -> tuple[int, int, int]:
    """Return red, green and blue of ``#rrggbb``, from 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
