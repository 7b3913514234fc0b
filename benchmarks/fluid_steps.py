"""Theorem 4 of the thesis: optimal steady states as schedules of K staggered chunks.

Forests of the best rate, found and proved here, become schedules (`formulations.fluid.steps`), each
verified. Nothing is measured but what the theorem says: R (T + K - 1) / K. ``python -m
benchmarks.fluid_steps FILE.svg`` draws it.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.table import Table

from benchmarks.measuring import said, table
from ccl.collective import all_gather
from ccl.problem import Problem
from formulations.fluid.steps import Conversion, conversion
from formulations.forest.plans import forest_of
from gallery import open_cluster

CLUSTERS = (
    ("two boxes of 4 GPUs", "forestcoll-12:alpha=0", "#0072b2"),
    ("cube of 8 GPUs", "hypercube:dimension=3,alpha=0", "#009e73"),
    ("ring of 8 GPUs", "ring:gpus=8,alpha=0", "#d55e00"),
)
"""Title, cluster of the gallery, colour of its line."""

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 24, 52
_MOST = 8.0
"""Makespan over R at the top of the drawing."""


@dataclass(frozen=True, slots=True)
class Line:
    """The conversions of one cluster."""

    title: str
    colour: str
    rows: tuple[Conversion, ...]

    @property
    def falls(self) -> bool:
        """Whether each schedule is shorter than the one before, and none shorter than R."""
        times = [row.duration for row in self.rows]
        return all(after < before for before, after in itertools.pairwise(times)) and (
            times[-1] > self.rows[-1].rate
        )


def lines() -> Iterator[Line]:
    """Yield the conversions of an all-gather of 1 MB per GPU on each cluster."""
    for title, name, colour in CLUSTERS:
        topology = open_cluster(name)
        ranks = len(topology.ranks)
        problem = Problem(topology, all_gather(ranks, ranks * 1e6))
        yield Line(title, colour, conversion(problem, forest_of(problem).forest))


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
    made.caption = f"all fall towards R: {said(all(line.falls for line in found))}"
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
