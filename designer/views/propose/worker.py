"""``python -m designer.views.propose.worker``: one search for networks in a process of its own.

It reads one request and writes lines as soon as there is news: a ``candidate`` once, with its
drawing, and a ``front`` with the keys of all that count now, the best first. ``error`` is a
sentence for the user, ``done`` the last line. The process can be ended at any time.
"""

from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Any

from ccl.errors import CclError
from ccl.layout import layout
from formulations import answer_one
from formulations.proposals import AXES, Candidate, Front, Request, propose, read_mix
from gallery.costs import Bill, Prices
from widgets.view_model.scene import drawing

PAUSE = 0.4
"""Seconds between two reports of a front."""

SAID = 12
"""Candidates, the best at the mix, that have a sentence why."""

Json = dict[str, Any]


def search(request: Mapping[str, Any]) -> Iterator[Json]:
    """Yield what a search finds.

    Parameters
    ----------
    request
        Fields of `formulations.proposals.Request`, the mix as `read_mix` takes it.
    """
    told: dict[int, tuple[str, Candidate]] = {}
    last = -PAUSE
    try:
        asked = Request(**{**request, "mix": read_mix(request["mix"])})
        for front in propose(asked, prices=Prices()):
            for each in front.candidates:
                if id(each) not in told:
                    key = f"n{len(told)}"
                    told[id(each)] = key, each
                    yield {"candidate": _candidate(key, each)}
            if front.done or monotonic() - last >= PAUSE:
                last = monotonic()
                yield {"front": _front(front, {number: key for number, (key, _) in told.items()})}
    except CclError as error:
        yield {"error": str(error)}
    yield {"done": True}


def described(front: Front) -> tuple[dict[str, Json], Json]:
    """Return all networks of a front by key, the best first, and the front, as `search` does."""
    keys = {id(each): f"n{place}" for place, each in enumerate(front.candidates)}
    networks = {keys[id(each)]: _candidate(keys[id(each)], each) for each in front.candidates}
    return networks, _front(front, keys)


def _candidate(key: str, found: Candidate) -> Json:
    score, bill = found.score, found.bill
    return {
        "key": key,
        "name": found.name,
        "family": found.family,
        "one_way": found.one_way,
        "values": {axis: found.along(axis) for axis in AXES},
        "algbw": {kind: rate.algbw for kind, rate in score.rates.items()},
        "gaps": {kind: rate.gap for kind, rate in score.rates.items()},
        "parts": _parts(bill) if isinstance(bill, Bill) else [],
        "drawing": drawing(found.topology, layout(found.topology)),
    }


def _parts(bill: Bill) -> list[Json]:
    """Return the parts between GPUs, their dollars and watts low, typical and high."""
    return [
        {
            "part": each.part,
            "title": each.title,
            "count": each.count,
            "unit": each.unit,
            "dollars": [each.dollars.low, each.dollars.typical, each.dollars.high],
            "watts": [each.watts.low, each.watts.typical, each.watts.high],
        }
        for each in bill.rows
        if each.group == "network"
    ]


def _front(front: Front, keys: Mapping[int, str]) -> Json:
    reference = front.reference
    return {
        "order": [keys[id(each)] for each in front.candidates],
        "why": {keys[id(each)]: front.why(each) for each in front.candidates[:SAID]},
        "reference": None if reference is None else keys[id(reference)],
        "mix": [[each.collective, each.size, each.times] for each in front.request.mix.uses],
        "bounds": {axis: front.bound(axis) for axis in AXES},
        "stage": front.stage,
        "seconds": front.seconds,
        "left_out": front.left_out,
        "not_tried": front.not_tried,
    }


if __name__ == "__main__":
    answer_one(search)
