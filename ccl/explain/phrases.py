"""The words in which a send is told: templates with holes, which the canvas fills in as well.

The holes, each a name in braces:

* `src`, `dst`: the devices of the link;
* `chunk`: the chunk by its label, or the share of it that is sent;
* `start`, `end`, `ready`, `wait`: µs as `number` writes them; `wait` is from `ready` to `start`;
* `before`, `from`, `over`: of the transfer that let this one start the chunk, the device it
  leaves, and its link;
* in `PLANNED`, `epoch` and `planned`: the epoch and when it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

from ccl.causes import Reason
from ccl.problem import Problem

_SENDS = "{src} sends {chunk} to {dst} at {start} µs, there at {end} µs: "

_WAITED = "it was at {src} from {ready} µs on and waited {wait} µs "

PHRASES: Mapping[Reason, str] = {
    Reason.AT_ONCE: f"{_SENDS}at once.",
    Reason.NOT_THERE: f"{_SENDS}as soon as all of it had come, last from {{from}}.",
    Reason.LINK_BUSY: f"{_SENDS}{_WAITED}for the link, busy with {{before}}.",
    Reason.PASSED_ON: f"{_SENDS}passed on byte by byte as it comes from {{from}}.",
    Reason.FURTHER_ON: f"{_SENDS}{_WAITED}for {{over}} further on, busy with {{before}}.",
    Reason.MEETS: f"{_SENDS}{_WAITED}to meet what comes from {{from}} in a switch that adds.",
    Reason.LIMIT: f"{_SENDS}{_WAITED}for a limit that its link shares with others.",
    Reason.CLOSED: f"{_SENDS}{_WAITED}for the link, which let nothing through before.",
    Reason.PLANNED: f"{_SENDS}{_WAITED}because the plan starts it only then.",
}
"""The sentence of a send for each reason."""

PART = "{share} % of {chunk}"
"""What is sent where it is not a whole chunk."""

EARLIER = " Planned for epoch {epoch}, from {planned} µs on."
"""What is added where the epoch of the plan begins after the send does."""

DIGITS = 6
"""Significant digits of times in sentences."""


def number(value: float, digits: int = DIGITS) -> str:
    """Write a number with so many significant digits at most, as the canvas' `short` does.

    Halves go up, there are no trailing zeros and no exponents.
    """
    if not value:
        return "0"
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = exact.quantize(step, rounding=ROUND_HALF_UP)
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def chunk_label(problem: Problem, chunk: int) -> str:
    """Name a chunk for people: where it comes from, and where it goes if that is one rank."""
    asked, ranks = problem.collective.chunks[chunk], problem.topology.ranks
    if asked.reduced:
        return f"sum {chunk}"
    start = ranks[asked.holders[0]]
    if len(asked.destinations) == 1:
        return f"chunk {chunk} ({start} → {ranks[asked.destinations[0]]})"
    return f"chunk {chunk} of {start}"


def phrases() -> dict[str, str]:
    """Return the templates by the words of their reasons, and `part` and `earlier`, as JSON."""
    told = {reason.value: template for reason, template in PHRASES.items()}
    return {**told, "part": PART, "earlier": EARLIER}
