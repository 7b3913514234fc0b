"""Exact rates of all-gathers, forests that have them, all-reduces, and forests as schedules.

Forests are verified and replayed. Seconds of a forest are those of a whole solve on a new cluster:
symmetry, search, exact weights, verification and replay.

The halves of an all-reduce share the links: data is added up along trees into roots and spread
along trees out of them; both loads meet on the links and roots take what share they like. Where
uploads of one half leave downloads for the other this is faster than one half after the other, by
1 - n / (2 (n - 1)) of n GPUs at most: through a cut with the bandwidth B out of it, all data of the
n GPUs has to pass for one half or the other, n / B, and an all-gather takes (n - 1) / B at the
narrowest GPU or less.

Theorem 4 of the thesis: forests in closed form, whose rate meets a lower bound, become schedules of
K staggered chunks (`formulations.engines.fluid_lp.stepwise`), each verified; no seconds are
measured, only the theorem's R (T + K - 1) / K. ``python -m benchmarks.forests FILE.svg`` draws it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from itertools import pairwise, product
from pathlib import Path

from rich.table import Table

from benchmarks.measuring import GB, median_of, progress, said, table
from ccl.collective import all_gather, all_reduce
from ccl.errors import CclError
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Result, Status
from ccl.tree_embedding import steady_makespan
from formulations import solve
from formulations.bounds import quick_bounds
from formulations.engines.fluid_lp.stepwise import Conversion, conversion
from formulations.engines.forestcoll.search import fixed_rate, forest_rate, network_of
from gallery import open_cluster

READABLE = 10**6
"""Fractions with a smaller denominator are printed; rates that are not proved have large ones."""


@dataclass(frozen=True, slots=True)
class Published:
    """An optimal algbw in GB/s; `trees` per root, or 0 for any number."""

    title: str
    cluster: str
    algbw: str
    trees: int = 0


PUBLISHED = (
    Published("DGX A100", "dgx-a100", "342.857"),
    Published("DGX A100 x 2", "dgx-a100:hosts=2,fabric=flat", "346.667"),
    Published("DGX A100 x 4", "dgx-a100:hosts=4,fabric=flat", "266.667"),
    Published("MI250", "mi250", "342.857"),
    Published("MI250 x 2", "mi250:hosts=2", "354.133"),
    Published("MI250 x 2, 2 trees per die", "mi250:hosts=2", "341.333", 2),
)
"""ForestColl, section 4.5, and its published program on the same clusters."""


def gathering(cluster: str) -> Problem:
    """Return the all-gather to which every GPU gives a GB, on a new cluster."""
    topology = open_cluster(cluster)
    return Problem(topology, all_gather(len(topology.ranks), len(topology.ranks) * GB))


def algbw_of(row: Published) -> Fraction:
    """Return the best algbw of an all-gather in GB/s."""
    rate = forest_rate(gathering(row.cluster))
    ranks = len(rate.network.topology.ranks)
    if not row.trees:
        return ranks * rate.shards
    network = network_of(gathering(row.cluster))
    best = fixed_rate(network, row.trees, best=rate.speed / network.unit)
    return ranks * row.trees * network.unit / best.time


def forestcoll(repeat: int) -> Iterator[Table]:
    """Yield ForestColl's optimal algbw as fractions."""
    algbw_of(PUBLISHED[0])
    made = table(
        "ForestColl's optimal all-gather", ("cluster", "algbw GB/s", "is", "s", "same"), ("GB/s",)
    )
    for row in PUBLISHED:
        found, seconds = median_of(repeat, lambda row=row: algbw_of(row))  # type: ignore[misc]
        same = said(f"{float(found):.3f}" == row.algbw)
        made.add_row(
            row.title, str(found), f"{float(found):.3f}", f"{seconds.wall:.4f}", same, row.algbw
        )
    yield made


@dataclass(frozen=True, slots=True)
class Wanted:
    """A forest to be found within some seconds, what others needed, seconds after which to stop."""

    cluster: str
    seconds: float
    published: str = ""
    limit: float | None = None


FORESTS = (
    Wanted("thesis-dgx-a100:hosts=128", 5.0),
    Wanted("mi250:hosts=8", 10.0),
    Wanted("random:gpus=128,switches=32,degree=6", 30.0),
    Wanted("random:gpus=128,switches=32,degree=6,seed=1", 30.0),
    Wanted("random:gpus=128,switches=32,degree=6,one_way=true", 30.0, limit=120.0),
)
PIPELINE = (
    Wanted("mi250:hosts=2", 5.0),
    Wanted("thesis-dgx-a100:hosts=16", 10.0, "39.2 s (thesis, 6.9)"),
    Wanted("thesis-dgx-a100:hosts=32", 60.0, "315 s (thesis, 6.9)"),
)


def forests(repeat: int) -> Iterator[Table]:
    """Yield forests by column generation with trees."""
    yield from _solved("forests by column generation with trees", "orbit-trees", FORESTS, repeat)


def pipeline(repeat: int) -> Iterator[Table]:
    """Yield forests by ForestColl's search, splitting and packing."""
    yield from _solved("ForestColl's own pipeline", "forestcoll", PIPELINE, repeat)


def _solved(title: str, formulation: str, rows: tuple[Wanted, ...], repeat: int) -> Iterator[Table]:
    headings = ("cluster", "GPUs", "R s/GB", "at the cut", "trees per GPU", "depth", "µs replayed")
    made = table(title, (*headings, "s", "CPU s", "asked s", "as asked"), ("others",))
    solve(gathering("thesis-dgx-a100:hosts=2"), formulation)
    for row in rows:
        problems = [gathering(row.cluster) for _ in range(repeat)]
        try:
            found, seconds = median_of(
                repeat,
                lambda: solve(problems.pop(), formulation, time_limit=row.limit),  # noqa: B023
            )
        except CclError as error:
            made.add_row(row.cluster, "", "", "", "", "", str(error))
            continue
        done = f"{seconds.wall:.2f}", f"{seconds.processor:.2f}", f"{row.seconds:g}"
        told = said(seconds.wall <= row.seconds)
        progress(row.cluster, *done[:2])
        made.add_row(row.cluster, *described(found), *done, told, row.published)
    yield made


def described(found: Result) -> tuple[str, ...]:
    """Return GPUs, exact rate, whether it is that of the cut, trees, depth and µs as texts."""
    assert isinstance(found.plan, Forest)
    problem, forest = found.problem, found.plan
    rate = Fraction(steady_makespan(problem, forest)) / 10**6
    ranks = len(problem.topology.ranks)
    at_cut = rate == forest_rate(problem).makespan / 10**6
    trees = len(forest.trees) * forest.images / ranks
    return (
        f"{ranks:,}",
        f"{rate} = {float(rate):.6g}" if rate.denominator < READABLE else f"{float(rate):.6g}",
        said(at_cut),
        f"{trees:.3g}",
        str(forest.depth),
        f"{found.makespan:.6g}",
    )


@dataclass(frozen=True, slots=True)
class Reduced:
    """A cluster, and the share that is saved there: what the notes say, or what has to be."""

    cluster: str
    gain: str = ""


GAINING = (
    Reduced("star:gpus=6,bandwidth=1,wide=1,wide_bandwidth=10,alpha=0", "40 %"),
    Reduced("star:gpus=8,bandwidth=1,wide=2,wide_bandwidth=4,alpha=0", "43 %"),
    Reduced("random:gpus=6,switches=2"),
    Reduced("random:gpus=16,switches=4"),
    Reduced("random:gpus=32,switches=8"),
    Reduced("random:gpus=64,switches=16"),
)
EVEN = tuple(
    Reduced(cluster, "0 %")
    for cluster in (
        "thesis-dgx-a100:hosts=2",
        "thesis-dgx-a100:hosts=16",
        "torus:shape=4x4",
        "hypercube:dimension=4",
        "fat-tree:radix=4",
        "dragonfly",
        "ndv2:hosts=1",
        "mi250",
        "mi250:hosts=2",
    )
)


def all_reduces(repeat: int) -> Iterator[Table]:
    """Yield optimal all-reduces of uneven networks, then of hardware, where nothing is gained."""
    solve(reducing("star"), "orbit-trees")
    for title, rows in (("uneven networks", GAINING), ("hardware and regular networks", EVEN)):
        headings = (
            "cluster",
            "GPUs",
            "2 x all-gather",
            "all-reduce",
            "gain",
            "at most",
            "no plan is better",
        )
        made = table(f"all-reduce, {title}: s/GB", (*headings, "depth", "s", "CPU s"), ("gain",))
        for row in rows:
            problems = [reducing(row.cluster) for _ in range(repeat)]
            found, seconds = median_of(
                repeat,
                lambda problems=problems: solve(problems.pop(), "orbit-trees"),  # type: ignore[misc]
            )
            done = f"{seconds.wall:.2f}", f"{seconds.processor:.2f}"
            made.add_row(row.cluster, *compared(row.cluster, found), *done, row.gain)
            progress(row.cluster, *done)
        yield made


def reducing(cluster: str) -> Problem:
    """Return the all-reduce of as many GB as there are GPUs, on a new cluster."""
    asked = gathering(cluster)
    return replace(asked, collective=all_reduce(asked.collective.ranks, asked.collective.size))


def halves_of(cluster: str) -> Fraction:
    """Return s/GB of two all-gathers, one after the other."""
    return 2 * forest_rate(gathering(cluster)).makespan / 10**6


def whole_of(found: Result) -> Fraction:
    """Return s/GB of the all-reduce found."""
    assert isinstance(found.plan, Forest)
    return Fraction(steady_makespan(found.problem, found.plan)) / 10**6


def compared(cluster: str, found: Result) -> tuple[str, ...]:
    """Return GPUs, both rates, the share saved, the most that can be, proof and depth as texts."""
    assert isinstance(found.plan, Forest)
    ranks = len(found.problem.topology.ranks)
    halves, whole = halves_of(cluster), whole_of(found)
    return (
        str(ranks),
        str(halves),
        str(whole),
        f"{float(1 - whole / halves):.1%}",
        f"{1 - ranks / (2 * (ranks - 1)):.1%}",
        said(found.status is not Status.FEASIBLE),
        str(found.plan.depth),
    )


WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 24, 52
_MOST = 8.0
"""Makespan over R at the top of the drawing."""


@dataclass(frozen=True, slots=True)
class Line:
    """The conversions of one cluster, and the lower bound on its steady state in µs."""

    title: str
    colour: str
    bound: float
    rows: tuple[Conversion, ...]

    @property
    def proved(self) -> bool:
        """Whether no steady state is faster."""
        return math.isclose(self.rows[0].rate, self.bound)

    @property
    def falls(self) -> bool:
        """Whether each schedule is shorter than the one before, and none shorter than R."""
        times = [row.duration for row in self.rows]
        return all(after < before for before, after in pairwise(times)) and (
            times[-1] > self.rows[-1].rate
        )


def lines() -> Iterator[Line]:
    """Yield the conversions of an all-gather of 1 MB for each of 8 GPUs, on three clusters."""
    for title, name, forest, colour in (
        ("switch of 8 GPUs", "star:gpus=8,alpha=0", _over_the_switch(), "#0072b2"),
        ("cube of 8 GPUs", "hypercube:dimension=3,alpha=0", _along_dimensions(), "#009e73"),
        ("ring of 8 GPUs", "ring:gpus=8,alpha=0", _both_ways(), "#d55e00"),
    ):
        problem = Problem(open_cluster(name), all_gather(8, 8e6))
        bound = max(each.makespan for each in quick_bounds(problem) if each.steady)
        yield Line(title, colour, bound, conversion(problem, forest))


def _over_the_switch() -> Forest:
    """Every GPU sends its shard to each other over the switch."""
    routes = {
        rank: tuple((f"g{rank}", "switch", f"g{other}") for other in range(8) if other != rank)
        for rank in range(8)
    }
    return Forest(tuple(Tree(rank, each, Fraction(1)) for rank, each in routes.items()))


def _along_dimensions() -> Forest:
    """Double who has a shard along the dimensions; a third of it in each of three orders."""
    trees = []
    for rank, first in product(range(8), range(3)):
        have, routes = [rank], []
        for bit in (1 << (first + turn) % 3 for turn in range(3)):
            routes += [(f"g{each}", f"g{each ^ bit}") for each in have]
            have += [each ^ bit for each in have]
        trees.append(Tree(rank, tuple(routes), Fraction(1, 3)))
    return Forest(tuple(trees))


def _both_ways() -> Forest:
    """Half of each shard goes round one way, half the other."""
    trees = []
    for rank, step in product(range(8), (1, -1)):
        stops = [f"g{(rank + step * turn) % 8}" for turn in range(8)]
        trees.append(Tree(rank, tuple(pairwise(stops)), Fraction(1, 2)))
    return Forest(tuple(trees))


def steps(_repeat: int) -> Iterator[Table]:
    """Theorem 4: K chunks started step by step."""
    found = list(lines())
    head = (
        "cluster",
        "T",
        "K",
        "steps",
        "R µs",
        "(T-1)/K R",
        "schedule µs",
        "above R",
        "replay µs",
    )
    made = table("thesis, theorem 4: steady states as schedules, each verified", head)
    for line in found:
        for row in line.rows:
            made.add_row(
                line.title,
                str(row.depth),
                str(row.chunks),
                str(row.steps),
                f"{row.rate:.6g}",
                f"{row.fill:.6g}",
                f"{row.duration:.6g}",
                f"{row.duration / row.rate - 1:.2%}",
                f"{row.makespan:.6g}",
            )
    good = all(line.falls and line.proved for line in found)
    made.caption = f"all fall towards R, which meets its bound: {said(good)}"
    yield made


def drawing(found: Sequence[Line]) -> str:
    """Return an SVG: makespan over R by number of chunks, the theorem as a line."""
    body = "\n".join([*_axes(found), *_lines(found)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#333">\n'
        "<title>Schedules of K staggered chunks approach the steady state</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _axes(found: Sequence[Line]) -> Iterator[str]:
    right, floor = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for ratio in range(1, int(_MOST) + 1):
        y = _y(ratio)
        shade = "#999" if ratio == 1 else "#e5e5e5"
        yield f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="{shade}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{ratio} R</text>'
    for row in found[0].rows:
        x = _x(row.chunks)
        yield f'<text x="{x:.1f}" y="{floor + 18}" text-anchor="middle">{row.chunks}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">chunks K</text>'
    yield f'<text x="{_LEFT}" y="14">schedule, in R, the time of the steady state</text>'


def _lines(found: Sequence[Line]) -> Iterator[str]:
    for place, line in enumerate(found):
        yield from _line(line, place)
    y = 52 + 20 * len(found)
    yield f'<text x="312" y="{y}">lines: R (T + K - 1) / K; dots: verified schedules</text>'


def _line(line: Line, place: int) -> Iterator[str]:
    last = line.rows[0]
    fine = [2 ** (place / 8) for place in range(8 * int(math.log2(line.rows[-1].chunks)) + 1)]
    said_by_theorem = _path((each, 1 + (last.depth - 1) / each) for each in fine)
    yield f'<path d="{said_by_theorem}" fill="none" stroke="{line.colour}" stroke-width="1.5"/>'
    for row in line.rows:
        x, y = _x(row.chunks), _y(row.duration / row.rate)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{line.colour}"/>'
    y = 52 + 20 * place
    text = escape(f"{line.title}, T = {last.depth}")
    yield f'<circle cx="300" cy="{y - 4}" r="3.5" fill="{line.colour}"/>'
    yield f'<text x="312" y="{y}" fill="{line.colour}">{text}</text>'


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_x(chunks):.1f} {_y(ratio):.1f}" for chunks, ratio in points)


def _x(chunks: float) -> float:
    return _LEFT + 12 + math.log2(chunks) / 8 * (WIDTH - _LEFT - _RIGHT - 24)


def _y(ratio: float) -> float:
    return HEIGHT - _BOTTOM - (ratio - 1) / (_MOST - 1) * (HEIGHT - _TOP - _BOTTOM)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawing(tuple(lines())), "utf-8")
