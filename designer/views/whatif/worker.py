"""``python -m designer.views.whatif.worker``: one study in a process of its own, told line by line.

It reads one request and writes what it finds as soon as it is there; ``error`` is a sentence for
the user, ``done`` is the last report. The process can be ended at any time, so nothing here
has to ask whether it may go on.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ccl.errors import CclError
from ccl.problem import Problem
from ccl.serialization.topoloom import problem_from_json, topology_to_json
from designer.views.solve.live import cut_summary
from formulations import answer_one
from formulations.analyses.expansion.costs import read_costs
from formulations.analyses.expansion.offers import Front, Upgrade
from formulations.analyses.failures.nouns import Failure, Straggler
from formulations.analyses.failures.study import LagStudy, Study

PATIENCE = 60.0
"""Seconds for an upgrade, and for a front."""

Json = dict[str, Any]
Given = Mapping[str, Any]


def study(request: Given) -> Iterator[Json]:
    """Yield what a study finds.

    Parameters
    ----------
    request
        ``study``: ``failures``, ``stragglers`` or ``budget``; ``problems`` as JSON; and what that
        study takes besides: ``alpha`` and ``beta``; ``costs`` and ``target``.
    """
    problems = [problem_from_json(each) for each in request["problems"]]
    try:
        yield from STUDIES[request["study"]](problems, request)
    except CclError as error:
        yield {"error": str(error)}
    yield {"done": True}


def _failures(problems: list[Problem], _request: Given) -> Iterator[Json]:
    made = Study(problems[0])
    yield {"of": len(made.parts), "algbw": made.today.algbw}
    rows: list[Failure] = []
    for row in made.rows():
        rows.append(row)
        yield {"row": {**_row(row), "cut_off": list(row.cut_off), "ends": row.optimum is None}}
    yield {"words": made.so_far(rows).words}


def _stragglers(problems: list[Problem], request: Given) -> Iterator[Json]:
    made = LagStudy(problems[0], alpha=float(request["alpha"]), beta=float(request["beta"]))
    yield {"of": len(made.parts), "algbw": made.today.algbw}
    rows: list[Straggler] = []
    for row in made.rows():
        rows.append(row)
        yield {"row": {**_row(row), "cut_off": [], "ends": False}}
    yield {"words": made.so_far(rows).words}


def _row(row: Failure | Straggler) -> Json:
    part = row.part
    return {
        "kind": part.kind,
        "names": list(part.names),
        "parallel": part.parallel,
        "members": [list(each) for each in part.members],
        "alike": row.alike,
        "words": row.words,
        "lost": row.lost,
        "algbw": row.algbw,
        "cut": None if row.cut is None else cut_summary(row.cut, row.topology, row.makespan or 0.0),
    }


def _budget(problems: list[Problem], request: Given) -> Iterator[Json]:
    # They load a solver, which what loses and lags seldom needs.
    from formulations import cheapest_upgrade, cost_front  # noqa: PLC0415

    costs = read_costs(request["costs"])
    found = cheapest_upgrade(problems, costs, target=request["target"], time_limit=PATIENCE)
    yield {"today": costs.today(problems[0].topology)}
    yield {"upgrade": _upgrade(found)}
    highest = max(found.factor * 1.25, 2.0)
    yield {"front": _front(cost_front(problems, costs, most=highest, time_limit=PATIENCE))}


def _upgrade(found: Upgrade) -> Json:
    return {
        "cost": found.cost,
        "currency": found.currency,
        "factor": found.factor,
        "proved": found.proved,
        "bought": [
            {
                "words": each.words,
                "count": each.count,
                "before": each.before,
                "after": each.after,
                "cost": each.cost,
                "limits": bool(each.limits),
            }
            for each in found.bought
        ],
        "gains": [
            {
                "collective": each.collective,
                "before": each.before,
                "after": each.after,
                "held": [words for words, _ in each.held],
            }
            for each in found.gains
        ],
        "topology": topology_to_json(found.topology),
    }


def _front(found: Front) -> Json:
    return {
        "points": [[each.cost, each.factor] for each in found.points],
        "kind": found.kind,
        "complete": found.complete,
    }


STUDIES: Mapping[str, Callable[[list[Problem], Given], Iterator[Json]]] = {
    "failures": _failures,
    "stragglers": _stragglers,
    "budget": _budget,
}


if __name__ == "__main__":
    answer_one(study)
