"""Small clusters and a result, solved once."""

from __future__ import annotations

import pytest

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.topoloom import topology_to_json
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations import solve


@pytest.fixture(scope="session")
def ring() -> Topology:
    """Four GPUs in two hosts on a ring of 50 GB/s links; two of the links share a limit."""
    names = [f"gpu{i}" for i in range(4)]
    links = [
        link
        for i in range(4)
        for link in duplex(names[i], names[(i + 1) % 4], bandwidth=50, alpha=0.5, medium="NVLink")
    ]
    return Topology(
        name="ring of 4",
        devices=tuple(device("gpu", name, host=f"h{i // 2}") for i, name in enumerate(names)),
        links=tuple(links),
        limits=(SharedLimit("bus", (("gpu0", "gpu1"), ("gpu0", "gpu3")), 120.0),),
    )


@pytest.fixture
def drawn(ring):
    """The ring as the canvas holds it."""
    return topology_to_json(ring)


@pytest.fixture(scope="session")
def result(ring):
    """A schedule of a 4 MB all-gather, each shard sent whole."""
    return solve(Problem(ring, all_gather(4, 4e6)), "te-ccl-milp", time_limit=20)
