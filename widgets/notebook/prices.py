"""What links are worth (`ccl.prices`) in a notebook: on the drawing, and as bars beside it."""

from __future__ import annotations

from html import escape
from typing import Any

import ipywidgets

from ccl.layout import layout
from ccl.prices import Prices
from ccl.serialization.documents import document
from widgets.charts.load import HEATS
from widgets.notebook.canvas import TopologyWidget
from widgets.notebook.comparison import Positions
from widgets.notebook.still import Still
from widgets.pages.saving import Content
from widgets.pictures.colors import LIGHT, between
from widgets.pictures.shapes import Box, Ground, Picture, Rect, Shape, Words
from widgets.pictures.svg import svg
from widgets.shown.prices import TITLE, heat, price_marks, price_words


class PriceView(Still, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """The price of each link on the drawing: µs saved for each GB/s added to it.

    Parameters
    ----------
    prices
        As `formulations.prices` returns them.
    positions
        Middle of each device by name; by default `ccl.layout.layout` is asked.
    **traits
        Of the `TopologyWidget`, such as ``height="400px"``.
    """

    def __init__(
        self, prices: Prices, *, positions: Positions | None = None, **traits: Any
    ) -> None:
        self.prices = prices
        where = positions or layout(prices.topology)
        defaults = {"toolbar": False, "timeline": False, "height": "400px"}
        self.canvas = TopologyWidget(prices.topology, where, **defaults | traits)
        """The drawing."""
        self.canvas.set_trait("marks", price_marks(prices))
        about = escape(price_words(prices))
        self.about = ipywidgets.HTML(f'<span role="status">{about}</span>')
        """What the prices are of."""
        super().__init__([self.canvas, self.about])

    def _words(self) -> str:
        return str(self.prices)

    def _picture(self) -> str | None:
        return price_svg(self.prices)

    def _held(self) -> Content:
        return document(self.prices.topology, positions=self.canvas.positions)


_NAME = 190.0
"""Width of a name at most."""
_LETTER = 6.2
"""Width of a letter, about."""
_BAR = 560.0
_ROW = 17.0
_SIDE = 12.0
_ROWS = 24
"""Links that are drawn, the dearest first."""


def price_svg(prices: Prices) -> str | None:
    """Draw the prices of the dearest links as bars; None where no link has one."""
    dearest = prices.dearest[:_ROWS]
    if not dearest:
        return None
    names = ["→".join(ends) for ends in dearest]
    left, most = min(_NAME, max(map(len, names)) * _LETTER), prices.links[dearest[0]]
    heats = HEATS["light"]
    shapes: list[Shape] = []
    for i, (name, ends) in enumerate(zip(names, dearest, strict=True)):
        y, price = i * _ROW, prices.links[ends]
        wide = left if len(name) * _LETTER > left else 0.0
        shapes.append(Words((left, y + 12.5), name, 10.0, LIGHT.text, anchor="end", wide=wide))
        bar = Rect(left + 8, y + 2, left + 8 + _BAR * price / most, y + _ROW - 2)
        colour = between(heats.middle, heats.full, heat(price, most))
        shapes.append(Box(bar, colour, title=f"{name}: {price:.4g} {TITLE}"))
        at = (bar.x2 + 6, y + 12.5)
        shapes.append(Words(at, f"{price:.3g}", 10.0, LIGHT.dim, anchor="start"))
    end = len(names) * _ROW + 14
    more = len(prices.dearest) - len(names)
    note = TITLE + (f", and {more} more links" if more else "")
    shapes.append(Words((left + 8, end), note, 10.0, LIGHT.dim, anchor="start"))
    frame = Rect(-_SIDE, -_SIDE, left + _BAR + 60 + 2 * _SIDE, end + 2 * _SIDE)
    about = f"{note}, the dearest first: {prices.model}"
    return svg(Picture(frame, 1.0, Ground(LIGHT.bg), tuple(shapes), "Prices of links", about))
