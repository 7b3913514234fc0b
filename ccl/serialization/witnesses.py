"""Lower bounds and their witnesses in ``topoloom/1``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ccl.bound import Bound, Cut, Path
from ccl.serialization import wire

Json = dict[str, Any]


def bound_to_json(bound: Bound) -> Json:
    """Return a bound with its witness."""
    witness: Json | None = None
    if isinstance(bound.witness, Cut):
        witness = {
            "witness": "cut",
            "inside": list(bound.witness.inside),
            "links": [list(ends) for ends in bound.witness.links],
            "bandwidth": bound.witness.bandwidth,
        }
    elif isinstance(bound.witness, Path):
        witness = {"witness": "path", "devices": list(bound.witness.devices)}
    return {
        "makespan": bound.makespan,
        "kind": bound.kind,
        "reference": bound.reference,
        "witness": witness,
        "whole_chunks": bound.whole_chunks,
        **({"steady": True} if bound.steady else {}),
    }


def bound_of(value: wire.BoundJson) -> Bound:
    """Make a bound of its shape."""
    witness: Cut | Path | None = None
    if isinstance(value.witness, wire.CutJson):
        witness = Cut(
            tuple(value.witness.inside), tuple(value.witness.links), value.witness.bandwidth
        )
    elif isinstance(value.witness, wire.PathJson):
        witness = Path(tuple(value.witness.devices))
    return Bound(
        value.makespan,
        value.kind,
        witness,
        value.reference,
        value.whole_chunks,
        value.steady,
    )


def named_by(bound: Bound) -> Iterator[str]:
    """Yield every device that the witness of a bound names."""
    if isinstance(bound.witness, Path):
        yield from bound.witness.devices
    elif isinstance(bound.witness, Cut):
        yield from bound.witness.inside
        for ends in bound.witness.links:
            yield from ends
