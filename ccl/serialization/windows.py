"""Windows of less bandwidth as a person types them: ``gpu0->gpu1@0..50us=0.5``.

Before ``@`` links, by commas: ``a->b`` one way, ``a<->b`` both, or a device with all of its links.
Then from when to when, in us, ms or s, and what share of the bandwidth is left, ``0.5`` or ``50%``.
"""

from __future__ import annotations

import re

from ccl.errors import FormatError
from ccl.topology import Topology
from ccl.window import Window

_UNITS = {"us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+"
_UNIT = "|".join(_UNITS)
_TIMES = re.compile(
    rf"\s*({_NUMBER})\s*({_UNIT})?\s*\.\.\s*({_NUMBER})\s*({_UNIT})?\s*", re.IGNORECASE
)
_SHARE = re.compile(rf"\s*({_NUMBER})\s*(%)?\s*", re.IGNORECASE)


def parse_window(text: str, topology: Topology) -> Window:
    """Return the window that a text such as ``gpu0->gpu1@0..50us=0.5`` means.

    Parameters
    ----------
    text
        Links, times and the share that is left.
    topology
        The cluster, whose links the text names.

    Raises
    ------
    FormatError
        If it is not written like this.
    ProblemError
        If there is no such link or device, no time is covered, or the share is out of range.
    """
    where, _, rest = text.rpartition("@")
    when, _, share = rest.rpartition("=")
    times, left = _TIMES.fullmatch(when), _SHARE.fullmatch(share)
    if not where.strip() or times is None or left is None:
        msg = f"window {text!r} cannot be read; write it like gpu0->gpu1@0..50us=0.5"
        raise FormatError(msg)
    begin, begins, end, ends = times.groups()
    unit = (ends or begins or "us").lower()
    return Window(
        links=tuple(dict.fromkeys(_links(where, topology))),
        begin=float(begin) * _UNITS[(begins or unit).lower()],
        end=float(end) * _UNITS[unit],
        share=float(left[1]) * (0.01 if left[2] else 1.0),
    )


def format_window(window: Window) -> str:
    """Return a window as `parse_window` reads it."""
    links = ",".join(f"{src}->{dst}" for src, dst in window.links)
    return f"{links}@{window.begin!r}..{window.end!r}us={window.share!r}"


def _links(where: str, topology: Topology) -> list[tuple[str, str]]:
    """Return the ends of each link that is named."""
    found: list[tuple[str, str]] = []
    for each in (part.strip() for part in where.split(",")):
        if "<->" in each:
            first, _, second = (end.strip() for end in each.partition("<->"))
            found += [topology.link(first, second).ends, topology.link(second, first).ends]
        elif "->" in each:
            src, _, dst = (end.strip() for end in each.partition("->"))
            found.append(topology.link(src, dst).ends)
        else:
            name = topology.device(each).name
            both = (*topology.links_out[name], *topology.links_in[name])
            found += [link.ends for link in both]
    return found
