"""Proposed networks beside tori, TPU twists and the bound of Moore, and exact rates by the clock.

``propose`` searches for networks of 64 GPUs with 4 links each and of 128 with 6, as a slice of
4 x 4 x 8 has, and prints the all-to-all of the best one in times of one link for what a GPU sends
to one other; then what the network with cheaper cables saves; then all-to-all without symmetry, to
half a percent, and of 1,024 GPUs by orbits.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.measuring import PartArgument, output, parts_named, said, table
from ccl.bound import moore_mean
from ccl.collective import all_to_all
from ccl.problem import Problem
from formulations.engines.fluid_lp.certified import certified_flows
from formulations.proposals import Mix, Request, Use, all_to_all_rate, propose
from formulations.proposals.search import CHEAPER, REWIRED
from gallery import open_cluster
from gallery.costs import Prices

SEARCHES = (
    (64, 4, 22.0, 25.0, "torus:shape=8x8", 1.38, 1.12),
    (128, 6, 50.0, 60.0, "twisted-torus:shape=4x4x8,twists=0x4x4", 1.24, None),
)
"""GPUs, ports, seconds to search, seconds at most, a network to beat, how many times, and how many
times the bound of Moore at most."""

IRREGULAR = (
    ("random:gpus=128,switches=0,degree=4", 5.0),
    ("random-regular:vertices=128", 5.0),
    ("random-regular:vertices=256", 30.0),
)
"""Clusters without symmetry, and the seconds that they may take."""

LARGE = (
    ("torus:shape=32x32", 0.5),
    ("twisted-torus:shape=16x8x8,twists=0x8x4", 0.5),
    ("rail-only:hosts=128", 0.5),
    ("dragonfly:groups=32,routers=8,gpus=4,uplinks=4", 5.0),
)
"""Clusters of 1,024 GPUs, and the seconds that their all-to-all may take."""

NEAR = 0.005
"""Share by which a flow may be above its bound."""

PAIR = 1e6
"""Bytes of each pair."""


def main(part: PartArgument = "all") -> None:
    """Print what is proposed, how good that is, and how long exact rates take."""
    _load()
    for each in parts_named(part, PARTS):
        each()


def _load() -> None:
    """Load solvers, so that no row is charged for it."""
    all_to_all_rate(open_cluster("torus:shape=4x4"), seconds=5)
    all_to_all_rate(open_cluster("random-regular:vertices=64"), seconds=5)


def _links(algbw: float, gpus: int, bandwidth: float) -> float:
    """Return the time of an all-to-all in times of one link for what goes from GPU to GPU."""
    return gpus * bandwidth / algbw


def _searches() -> None:
    heads = ("GPUs", "ports", "best", "all-to-all", "proved at least", "other", "× other", "asked")
    made = table("proposals", (*heads, "× Moore", "asked", "s", "asked", "met"))
    for gpus, ports, seconds, most, other, times, above in SEARCHES:
        mix = Mix((Use("all-to-all", 1e9),))
        request = Request(gpus=gpus, ports=ports, mix=mix, seconds=seconds)
        began = time.perf_counter()
        *_, front = propose(request)
        took = time.perf_counter() - began
        rate = front.candidates[0].score.rates["all-to-all"]
        found, least = (_links(each, gpus, 50.0) for each in (rate.algbw, rate.most))
        theirs = _links(all_to_all_rate(open_cluster(other), seconds=5).algbw, gpus, 50.0)
        moore = found * ports / ((gpus - 1) * moore_mean(gpus, ports))
        met = theirs / found >= times and took < most and (above is None or moore <= above)
        cells = [str(gpus), str(ports), front.candidates[0].name, f"{found:.3f}", f"{least:.3f}"]
        cells += [f"{theirs:.3f}", f"{theirs / found:.3f}", f"{times}", f"{moore:.3f}"]
        cells += ["" if above is None else f"{above}", f"{took:.1f}", f"{most:g}", said(met)]
        output().print(*cells, sep="  ")
        made.add_row(*cells)
    output().print(made)


def _cables() -> None:
    heads = ("GPUs", "ports", "network", "all-to-all GB/s", "$", "all-to-all %", "$ %")
    made = table("cables that cost less", heads)
    for gpus, ports, seconds, *_ in SEARCHES:
        request = Request(gpus=gpus, ports=ports, seconds=seconds)
        front = list(propose(request, prices=Prices()))[-1]
        torus = next(each for each in front.candidates if each.family == "torus")
        fastest = next(each for each in front.candidates if each.family == REWIRED)
        cheaper = next(each for each in front.candidates if each.family == CHEAPER)
        base = fastest.along("dollars")
        assert base is not None, "the packaged parts have all cables of these"
        for each in (fastest, cheaper, torus):
            algbw, dollars = each.score.rates["all-to-all"].algbw, each.along("dollars") or 0.0
            share = 100 * (algbw / fastest.score.rates["all-to-all"].algbw - 1)
            cells = [str(gpus), str(ports), each.name, f"{algbw:.1f}", f"{dollars:,.0f}"]
            made.add_row(*cells, f"{share:.1f}", f"{100 * (dollars / base - 1):.1f}")
    output().print(made)


def _irregular() -> None:
    made = table("all-to-all without symmetry", ("cluster", "µs", "proved", "gap %", "s", "asked"))
    for name, most in IRREGULAR:
        topology = open_cluster(name)
        many = len(topology.ranks)
        began = time.perf_counter()
        problem = Problem(topology, all_to_all(many, many * PAIR))
        *_, flow = certified_flows(problem, seconds=2 * most, near=NEAR)
        took = time.perf_counter() - began
        cells = [name, f"{flow.makespan:.6g}", f"{float(flow.bound):.6g}", f"{100 * flow.gap:.3f}"]
        met = flow.gap <= NEAR and took < most
        made.add_row(*cells, f"{took:.1f}", f"{most:g}: {said(met)}")
    output().print(made)


def _large() -> None:
    made = table("all-to-all of 1,024 GPUs by orbits", ("cluster", "algbw GB/s", "s", "asked"))
    for name, most in LARGE:
        topology = open_cluster(name)
        began = time.perf_counter()
        rate = all_to_all_rate(topology, seconds=60)
        took = time.perf_counter() - began
        cells = [name, f"{rate.algbw:.6g}", f"{took:.2f}"]
        made.add_row(*cells, f"{most:g}: {said(took < most)}")
    output().print(made)


PARTS: dict[str, Callable[[], None]] = {
    "search": _searches,
    "cables": _cables,
    "irregular": _irregular,
    "large": _large,
}
