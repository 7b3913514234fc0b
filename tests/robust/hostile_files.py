"""Documents of a few bytes or more that once stopped a program, or might: for tests and fuzzing."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

LONG = 1_000_000
"""Characters of a long name."""


def topology(gpus: int, **changes: Any) -> Json:
    """Return a ring."""
    return {
        "name": "ring",
        "devices": [{"name": f"g{i}"} for i in range(gpus)],
        "links": [
            {"src": f"g{i}", "dst": f"g{(i + 1) % gpus}", "bandwidth": 1.0} for i in range(gpus)
        ],
        **changes,
    }


def plan(plan: Json, *, gpus: int = 2, collective: Json | None = None, **changes: Any) -> bytes:
    """Return a plan of a ring, by default of an all-gather of 1 kB."""
    asked = {"kind": "all-gather", "size": 1000.0, "chunks": 1, **(collective or {})}
    problem = {"topology": topology(gpus, **changes), "collective": asked}
    return _document("plan", problem=problem, plan=plan)


def hostile_documents() -> dict[str, bytes]:
    """Return documents by what is wrong with them."""
    return {
        "an exponent in a weight": forest("1e999999999"),
        "digits without end in a weight": forest(f"1/{'9' * LONG}"),
        "weights of 900 digits": plan(
            {
                "plan": "forest",
                "trees": [
                    {"root": i % 2, "routes": [[f"g{i % 2}", f"g{1 - i % 2}"]], "weight": each}
                    for i, each in enumerate(f"1/{10**900 + 2 * n + 1}" for n in range(400))
                ],
            }
        ),
        "a group without end": plan(
            {
                "plan": "forest",
                "trees": [{"root": 0, "routes": [["g0", "g1"]], "weight": "1"}],
                "symmetry": {"generators": [[1, 0]] * 10_000, "powers": [2**53] * 10_000},
            }
        ),
        "a million shares of many": plan(
            {"plan": "schedule", "epoch_duration": 1.0, "horizon": 1, "sends": []},
            gpus=1000,
            collective={"chunks": 1000},
        ),
        "short epochs under a limit": short_epochs(1e-9),
        "the shortest epochs under a limit": short_epochs(5e-324),
        "more epochs than there are numbers": plan(
            {
                "plan": "schedule",
                "epoch_duration": 1e300,
                "horizon": 2**53,
                "sends": [[2**53 - 1, 0, ["g0", "g1"], 1.0], [0, 1, ["g1", "g0"], 1.0]],
            }
        ),
        "a size beyond all": plan(
            {"plan": "schedule", "epoch_duration": 1.0, "horizon": 1, "sends": []},
            collective={"size": 1e308},
        ),
        "lists within lists": b"[" * LONG,
        "objects within objects": b'{"format":' * LONG,
        "two devices of one name": drawn(devices=[{"name": "g0"}, {"name": "g0"}]),
        "a link there twice": drawn(links=[{"src": "g0", "dst": "g1", "bandwidth": 1.0}] * 1000),
        "a long name": drawn(devices=[{"name": "g" * LONG}, {"name": "g1"}], links=[]),
        "a number that is none": drawn().replace(b"1.0", b"NaN"),
        "a bandwidth without end": drawn().replace(b"1.0", b"1e999999999"),
        "a whole number without end": forest("1").replace(b'"root": 0', b'"root": ' + b"9" * LONG),
    }


def forest(weight: str) -> bytes:
    """Return a forest of one tree with a weight."""
    tree = {"root": 0, "routes": [["g0", "g1"]], "weight": weight}
    return plan({"plan": "forest", "trees": [tree]})


def short_epochs(epoch_duration: float) -> bytes:
    """Return a plan whose transfers take very many epochs, under a limit."""
    sends = [[0, 0, ["g0", "g1"], 1.0], [0, 1, ["g1", "g0"], 1.0]]
    limit = {"name": "both", "links": [["g0", "g1"], ["g1", "g0"]], "bandwidth": 2.0}
    found = {"plan": "schedule", "epoch_duration": epoch_duration, "horizon": 2**40, "sends": sends}
    return plan(found, limits=[limit])


def drawn(**changes: Any) -> bytes:
    """Return a ring of two, changed."""
    return _document("topology", topology=topology(2, **changes))


def _document(kind: str, **content: Any) -> bytes:
    return json.dumps({"format": "topoloom/1", "kind": kind, **content}).encode()
