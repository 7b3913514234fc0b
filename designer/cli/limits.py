"""``topoloom limits``: what limits a cluster, and what other bandwidths would give."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ccl import text
from ccl.bound import across
from ccl.errors import ProblemError
from designer.cli.asked import (
    Cluster,
    CollectiveOption,
    JsonOption,
    RootOption,
    SizeOption,
    ask,
    open_document,
    positive,
)
from designer.cli.show import print_json, print_table
from widgets.words.comparison import cut_words

if TYPE_CHECKING:
    from ccl.bound import Cut
    from formulations.analyses.sensitivity.curve import Piece, RateCurve
    from formulations.analyses.sensitivity.cutting_planes import Number
    from formulations.analyses.sensitivity.sensitivity import Sensitivity

HELD = 3
"""Links that are named where prices hold a piece."""


ClassOption = Annotated[
    int | None,
    typer.Option(
        "--class",
        metavar="N",
        help="Print the best rate over the bandwidth of class N of the table, with all kinks.",
        show_default=False,
    ),
]


def limits(
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    root: RootOption = None,
    orbits: Annotated[
        bool, typer.Option("--orbits", help="Only links that symmetries exchange are one class.")
    ] = False,
    number: ClassOption = None,
    low: Annotated[float, typer.Option(help="Where that begins, in times today's.")] = 0.25,
    high: Annotated[float, typer.Option(help="Where that ends, in times today's.")] = 4.0,
    as_json: JsonOption = False,
) -> None:
    """Print what limits a cluster: what more or less of each kind of links does to its rate."""
    problem = ask(open_document(cluster), collective=collective, size=size, chunks=None, root=root)
    positive("--low", low, unit="times today's bandwidth")
    positive("--high", high, unit="times today's bandwidth")
    from formulations import sensitivity  # noqa: PLC0415  it loads a solver

    found = sensitivity(problem, by="orbit" if orbits else "kind")
    curve = None if number is None else _curve_of(found, number, low=low, high=high)
    if as_json:
        print_json(_answer(found, curve))
        return
    for sentence in found.words:
        typer.echo(sentence)
    typer.echo()
    print_table(
        ("", "class", "links", "1 % more gives", "1 % less costs", "per GB/s"), _rows(found)
    )
    if curve is not None:
        _print_curve(curve)


def _curve_of(found: Sensitivity, number: int, *, low: float, high: float) -> RateCurve:
    """Return the curve of a class by its number in the table."""
    from formulations import rate_curve  # noqa: PLC0415

    if not 1 <= number <= len(found.effects):
        msg = f"--class is {number}, and there are classes 1 to {len(found.effects)}; give one"
        raise ProblemError(msg)
    chosen = found.effects[number - 1]
    links = () if chosen.limits else chosen.links
    return rate_curve(found.problem, links, limits=chosen.limits, low=low, high=high)


def _rows(found: Sensitivity) -> list[tuple[str, ...]]:
    return [
        (
            str(place),
            each.words,
            f"{each.many:,}",
            _percent(each.more),
            _percent(each.less),
            f"{text.digits(each.gain)} GB/s" if each.gains else text.NONE,
        )
        for place, each in enumerate(found.effects, start=1)
    ]


def _percent(value: Number) -> str:
    """Write an elasticity in per cent, as a fraction too where it is exact and not whole."""
    exact = isinstance(value, Fraction) and value.denominator > 1
    return f"{text.digits(float(value))} %" + (f" = {value}" if exact else "")


def _print_curve(curve: RateCurve) -> None:
    typer.echo()
    typer.echo(f"Over the bandwidth of {curve.words}:")
    rows = [
        (
            _number(each.start),
            _number(each.at(each.start)),
            _number(each.slope) if each.slope else "nothing",
            _held(curve, each),
        )
        for each in curve.pieces
    ]
    factor, algbw = curve.breaks[-1]
    rows.append((_number(factor), _number(algbw), "", ""))
    print_table(("times today's", "algbw GB/s", "then each time adds", "held by"), rows)


def _number(value: Number) -> str:
    """Write a number, and the fraction that it is where it is no whole number."""
    exact = isinstance(value, Fraction) and value.denominator > 1
    return f"{float(value):.6g}" + (f" = {value}" if exact else "")


def _held(curve: RateCurve, piece: Piece) -> str:
    """Say what holds a piece down: the side of its cut, or the dearest links."""
    if piece.cut is not None:
        where, names = across(piece.cut, curve.problem.topology)
        return f"the cut {where} {text.listing(names, 2)}"
    dearest = sorted(piece.prices, key=lambda ends: -piece.prices[ends])
    return f"prices of {text.listing(['->'.join(ends) for ends in dearest], HELD)}"


def _answer(found: Sensitivity, curve: RateCurve | None) -> dict[str, Any]:
    problem = found.problem
    return {
        "topology": problem.topology.name,
        "collective": problem.collective.kind,
        "size": problem.collective.size,
        "algbw_GBps": found.algbw,
        "exact": found.exact,
        "proved_by": found.optimum.proved_by,
        "words": list(found.words),
        "cuts": [_cut(found, each) for each in found.cuts],
        "classes": [
            {
                "words": each.words,
                "links": [list(ends) for ends in each.links],
                "limits": list(each.limits),
                "bandwidth_GBps": each.bandwidth,
                **_both("more", each.more),
                **_both("less", each.less),
                "price": each.price,
                "algbw_per_GBps": each.gain,
            }
            for each in found.effects
        ],
        "together": [
            {"classes": [place + 1 for place in each.effects], **_both("more", each.more)}
            for each in found.together
        ],
        "curve": None if curve is None else _curve(curve),
    }


def _cut(found: Sensitivity, cut: Cut) -> dict[str, Any]:
    return {
        "inside": list(cut.inside),
        "links": [list(ends) for ends in cut.links],
        "bandwidth_GBps": cut.bandwidth,
        "words": cut_words(cut, found.problem.topology),
    }


def _curve(curve: RateCurve) -> dict[str, Any]:
    return {
        "words": curve.words,
        "exact": curve.exact,
        "breaks": [
            {**_both("factor", factor), **_both("algbw_GBps", algbw)}
            for factor, algbw in curve.breaks
        ],
        "pieces": [
            {
                **_both("start", each.start),
                **_both("end", each.end),
                **_both("constant_GBps", each.constant),
                **_both("slope_GBps", each.slope),
                "held_by": _held(curve, each),
            }
            for each in curve.pieces
        ],
    }


def _both(name: str, value: Number) -> dict[str, Any]:
    """Return a number, and beside it the fraction where it is exact."""
    exact = {f"{name}_exact": str(value)} if isinstance(value, Fraction) else {}
    return {name: float(value), **exact}
