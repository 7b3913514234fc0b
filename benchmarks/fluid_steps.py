"""Theorem 4 of the thesis: optimal steady states as schedules of K staggered chunks.

Forests in closed form, whose rate meets a lower bound, become schedules
(`formulations.engines.fluid_lp.stepwise`), each verified; no seconds are measured, only the
theorem's R (T + K - 1) / K. ``python -m benchmarks.fluid_steps FILE.svg`` draws it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import pairwise, product
from pathlib import Path

from rich.table import Table

from benchmarks.measuring import said, table
from ccl.collective import all_gather
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from formulations.bounds import quick_bounds
from formulations.engines.fluid_lp.stepwise import Conversion, conversion
from gallery import open_cluster

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
