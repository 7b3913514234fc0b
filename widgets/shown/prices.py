"""What links are worth (`ccl.bound`) as marks on the drawing, and in words.

The dearest links are the hottest. Links of one price are one group of the legend.
"""

from __future__ import annotations

from typing import Any

from ccl import text
from ccl.bound import IDLE, Ends, Prices
from widgets.shown.classes import counted

TITLE = "µs saved per GB/s"

MOST_GROUPS = 7
"""Groups of the legend; dear links beyond them share the last."""


def price_marks(prices: Prices) -> dict[str, Any]:
    """Return the heat map of the links that save time, the dearest hottest (`widgets.shown.scene`).

    The others stay as they are drawn, so that arrows say which way bandwidth is short.
    """
    found = _grouped(prices)
    groups = [
        {"tone": {"heat": heat(price, found[0][0])}, "links": links, "label": label}
        for price, links, label in found
    ]
    idle = len(prices.links) - len(prices.dearest)
    title = f"{TITLE}, none on {counted(idle, 'link')}" if idle else TITLE
    return {"title": title, "groups": groups, "arrows": True}


def price_words(prices: Prices) -> str:
    """Say what is priced, and which shared limits hold it down."""
    told = f"{text.duration(prices.makespan)}: {prices.model}."
    held = [name for name in prices.limits if prices.share_of_limit(name) > IDLE]
    for name in held[:MOST_GROUPS]:
        told += f" Limit {name}: {prices.limits[name]:.3g} µs saved per GB/s."
    if not prices.dearest and not held:
        told += " No link alone holds it down."
    return told + (
        " Where several links are equally full, more of one alone may save less than its price."
    )


PriceGroup = tuple[float, list[list[str]], str]


def _grouped(prices: Prices) -> list[PriceGroup]:
    """Return the links of each price, the dearest first; those beyond the legend are one."""
    alike: dict[str, list[Ends]] = {}
    for ends in prices.dearest:
        alike.setdefault(f"{prices.links[ends]:.3g}", []).append(ends)
    found = [
        (prices.links[links[0]], [list(ends) for ends in links], f"{said} on {_many(links)}")
        for said, links in alike.items()
    ]
    if len(found) <= MOST_GROUPS:
        return found
    rest = found[MOST_GROUPS - 1 :]
    links = [ends for _, several, _ in rest for ends in several]
    last = (rest[0][0], links, f"{rest[0][0]:.3g} or less on {counted(len(links), 'link')}")
    return [*found[: MOST_GROUPS - 1], last]


def _many(links: list[Ends]) -> str:
    return "→".join(links[0]) if len(links) == 1 else counted(len(links), "link")


def heat(price: float, most: float) -> float:
    """Return the heat of a price: the dearest is 1, and whatever saves anything is seen."""
    return 0.25 + 0.75 * price / most
