"""``topoloom limits``: what limits a cluster, and what other bandwidths would give.

``topoloom upgrade``: the cheapest bandwidth with which collectives become fast enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import formulations
from ccl import text
from ccl.bound import across
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.serialization.documents import document, write_document
from designer.cli import request as cli
from formulations.analyses.expansion.costs import EVEN, Costs, read_costs
from widgets.words import cut_words

if TYPE_CHECKING:
    from formulations.analyses.expansion.offers import Change, Front, Gain, Upgrade
    from formulations.analyses.sensitivity.changes import Piece, RateCurve
    from formulations.analyses.sensitivity.cutting_planes import Number
    from formulations.analyses.sensitivity.sensitivity import Sensitivity

HELD = 3
"""Links that are named where prices hold a piece."""


def limits(
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    root: int | None = None,
    orbits: bool = False,
    number: int | None = None,
    low: float = 0.25,
    high: float = 4.0,
    as_json: bool = False,
) -> None:
    """Print what limits a cluster: what more or less of each kind of links does to its rate.

    Parameters
    ----------
    orbits
        Only links that symmetries exchange are one class.
    number : --class N
        Print the best rate over the bandwidth of class N of the table, with all kinks.
    low
        Where that begins, in times today's.
    high
        Where that ends, in times today's.
    """
    problem = cli.ask(cluster, collective=collective, size=size, root=root)
    cli.positive("--low", low, unit="times today's bandwidth")
    cli.positive("--high", high, unit="times today's bandwidth")
    from formulations import sensitivity  # noqa: PLC0415  it loads a solver

    found = sensitivity(problem, by="orbit" if orbits else "kind")
    curve = None if number is None else _curve_of(found, number, low=low, high=high)
    if as_json:
        cli.print_json(_answer(found, curve))
        return
    for sentence in found.words:
        typer.echo(sentence)
    typer.echo()
    cli.print_table(
        ("", "class", "links", "1 % more gives", "1 % less costs", "per GB/s"), _rows(found)
    )
    if curve is not None:
        _print_curve(curve)


def _curve_of(found: Sensitivity, number: int, *, low: float, high: float) -> RateCurve:
    """Return the curve of a class by its number in the table."""
    from formulations import rate_curve  # noqa: PLC0415

    if not 1 <= number <= len(found.effects):
        raise ProblemError(
            f"--class is {number}, and there are classes 1 to {len(found.effects)}; give one"
        )
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
    cli.print_table(("times today's", "algbw GB/s", "then each time adds", "held by"), rows)


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
        **cli.problem_answer(problem),
        "algbw_GBps": found.algbw,
        "exact": found.exact,
        "proved_by": found.optimum.proved_by,
        "words": list(found.words),
        "cuts": [
            cli.cut_answer(each) | {"words": cut_words(each, problem.topology)}
            for each in found.cuts
        ],
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


TARGET = "1.5x"
NAMED = 3
"""Most classes of links that a cell or a sentence names."""

ALL = 0.999
"""Links with a larger share are alone in what holds a collective down."""

KINDS = {
    "breaks": "any amount can be bought: corners of the front, straight in between",
    "steps": "all is bought in steps: every upgrade that none beats",
    "samples": "some is bought in steps and some is not: cheapest upgrades at some factors",
}


def upgrade(  # noqa: PLR0913  one for each flag
    cluster: str,
    *,
    collective: list[str] | None = None,
    costs: Path | None = None,
    target: Annotated[list[str] | None, {"show_default": TARGET}] = None,
    front: bool = False,
    by: Literal["kind", "orbit"] = "kind",
    root: int | None = None,
    time_limit: float | None = None,
    save: Path | None = None,
    as_json: bool = False,
) -> None:
    """Say which links to buy: the least cost with which collectives reach a target, proved.

    Parameters
    ----------
    collective : KIND
        What must become faster; repeat it for several.
    costs : FILE
        Costs as YAML (docs/whatif.md); by default every GB/s of every link costs 1.
    target : GB/S|FACTORx
        algbw, such as 300, or a factor over today's best, such as 1.5x; one for all
        collectives or one for each. With --front: the largest factor.
    front
        Print cost against speed, from today's cluster on.
    by
        kind: links of one bandwidth and medium get the same; orbit: only those that look
        alike do, which can be cheaper.
    time_limit : S
        Seconds.
    save : FILE
        Write the upgraded cluster as a document.
    """
    cli.positive("--time-limit", time_limit, unit="s")
    cli.writable(save)
    if front and save is not None:
        raise ProblemError("--front has many clusters and --save keeps one; leave one of them out")
    paid = EVEN if costs is None else read_costs(costs)
    problems = _problems(cluster, collective or [None], root=root)
    targets = target or [TARGET]
    if front:
        _front(problems, paid, most=_factor(targets), by=by, time_limit=time_limit, json=as_json)
        return
    goal = targets[0] if len(targets) == 1 else targets
    best = formulations.cheapest_upgrade(problems, paid, target=goal, by=by, time_limit=time_limit)
    if save is not None:
        write_document(save, document(best.topology))
    today = paid.today(problems[0].topology)
    if as_json:
        cli.print_json(_upgrade_answer(best) | {"today": today})
    else:
        _print(best, today=today)
    if save is not None:
        cli.remark(f"the upgraded cluster is in {save}")


def _problems(cluster: str, kinds: Sequence[str | None], *, root: int | None) -> list[Problem]:
    opened = cli.open_document(cluster)
    return [cli.ask(opened, collective=each, root=root) for each in kinds]


def _factor(targets: Sequence[str]) -> float:
    """Return the factor that one target is."""
    given = targets[0].strip()
    try:
        return float(given[:-1] if given.endswith(("x", "×")) and len(targets) == 1 else "")
    except ValueError:
        raise ProblemError(
            f"--front goes up to a factor, not to {' and '.join(targets)}; give one such as 3x"
        ) from None


def _front(
    problems: Sequence[Problem],
    costs: Costs,
    *,
    most: float,
    by: Literal["kind", "orbit"],
    time_limit: float | None,
    json: bool,
) -> None:
    found = formulations.cost_front(problems, costs, most=most, by=by, time_limit=time_limit)
    if json:
        cli.print_json(
            {
                "kind": found.kind,
                "complete": found.complete,
                "today": found.today,
                "points": [_upgrade_answer(each) for each in found.points],
            }
        )
        return
    first = found.points[0]
    cli.print_facts(f"{_kinds(first)} on {problems[0].topology}", _about(found))
    columns = ("factor", "cost", *(each.collective for each in first.gains), "bought")
    cli.print_table(columns, (_point(each) for each in found.points))
    if not found.complete:
        cli.remark("a limit came before the front was complete; what is printed is proved")


def _about(front: Front) -> Iterator[tuple[str, str]]:
    if front.today:
        yield "cluster today", money(front.today, front.currency)
    yield "points", KINDS[front.kind]


def _point(point: Upgrade) -> Iterator[str]:
    yield f"{text.digits(point.factor)}×"
    yield money(point.cost, point.currency)
    yield from (text.bandwidth(each.after) for each in point.gains)
    yield text.listing([_short(each) for each in point.bought], NAMED) or text.NONE


def _print(best: Upgrade, *, today: float) -> None:
    cli.print_facts(
        sentence(best),
        [
            ("asked", f"{_kinds(best)} on {best.topology}"),
            ("proved by", _proof(best)),
            ("cluster today", money(today, best.currency) if today else ""),
        ],
    )
    if best.bought:
        columns = ("buy", "links", "today", "then", "cost")
        cli.print_table(columns, (_change(each, best.currency) for each in best.bought))
    columns = ("collective", "today", "target", "then", "held by")
    cli.print_table(columns, (_gain(each, best) for each in best.gains))


def sentence(best: Upgrade) -> str:
    """Say in one sentence what to buy, what it costs and what then holds the first collective."""
    gain = min(best.gains, key=lambda each: each.after / each.target)
    by = _upgrade_held(gain, best)
    held = f"{gain.collective} runs at {text.bandwidth(gain.after)}, held by {by}"
    if not best.bought:
        return f"Nothing has to be bought: {held}."
    parts = [f"{text.bandwidth(each.added)} more on {_each(each)}" for each in best.bought[:NAMED]]
    others = len(best.bought) - NAMED
    if others > 0:
        parts.append(f"more on {text.count(others, 'kind')} of links besides")
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    verb = "cost" if len(parts) > 1 else "costs"
    return f"{listed} {verb} {money(best.cost, best.currency)}; then {held}."


def money(cost: float, currency: str) -> str:
    """Write a cost, such as ``$80,000`` or ``120 GB/s``."""
    number = f"{cost:,.0f}" if cost >= 100 or cost == round(cost) else text.digits(cost)
    return f"{currency}{number}" if len(currency) == 1 else f"{number} {currency}".rstrip()


def _proof(best: Upgrade) -> str:
    if best.proved:
        return "nothing cheaper satisfies the cuts and prices that hold these collectives down"
    return f"a solver's bound: nothing below {money(best.bound, best.currency)} is enough"


def _kinds(best: Upgrade) -> str:
    return ", ".join(each.collective for each in best.gains)


def _each(change: Change) -> str:
    if change.limits:
        return change.words
    medium, _, size = change.words.removeprefix("links").partition("at ")
    one = change.count == 1
    which = "the" if one else f"each of the {change.count}"
    return " ".join(f"{which} {medium} {'link' if one else 'links'} of {size}".split())


def _short(change: Change) -> str:
    return f"{change.words} to {text.bandwidth(change.after)}"


def _change(change: Change, currency: str) -> Iterator[str]:
    yield change.words
    yield str(change.count)
    yield text.bandwidth(change.before)
    whole = f" ({text.count(change.whole, 'link')} more each)" if change.whole else ""
    yield text.bandwidth(change.after) + whole
    yield money(change.cost, currency)


def _gain(gain: Gain, best: Upgrade) -> Iterator[str]:
    yield gain.collective
    yield text.bandwidth(gain.before)
    yield text.bandwidth(gain.target)
    yield f"{text.bandwidth(gain.after)} ({text.digits(gain.factor)}×)"
    yield _upgrade_held(gain, best)


def _upgrade_held(gain: Gain, best: Upgrade) -> str:
    """Say what holds a collective on the upgraded cluster: a cut, or links with their shares."""
    if gain.cut is not None:
        return cut_words(gain.cut, best.topology)
    shares = [
        f"{words} today" + (f" ({text.share(share)})" if share < ALL else "")
        for words, share in gain.held
    ]
    return text.listing(shares, NAMED)


def _upgrade_answer(best: Upgrade) -> dict[str, Any]:
    return {
        "cost": best.cost,
        "bound": best.bound,
        "proved": best.proved,
        "currency": best.currency,
        "factor": best.factor,
        "changes": [
            {
                "links": each.words,
                "count": each.count,
                "before_GBps": each.before,
                "after_GBps": each.after,
                "cost": each.cost,
            }
            for each in best.changes
        ],
        "collectives": [
            {
                "collective": each.collective,
                "before_GBps": each.before,
                "target_GBps": each.target,
                "after_GBps": each.after,
                "cut": None if each.cut is None else list(each.cut.inside),
                "held": [{"links": words, "share": share} for words, share in each.held],
            }
            for each in best.gains
        ],
    }
