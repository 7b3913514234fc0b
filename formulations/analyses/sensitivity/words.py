"""What limits a cluster, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ccl.bound import Cut
from ccl.cut_words import across
from ccl.explain.writing import listing

if TYPE_CHECKING:
    from formulations.analyses.sensitivity.cutting_planes import Number
    from formulations.analyses.sensitivity.sensitivity import Effect, Sensitivity, Together

MOST_CUTS = 3
"""Tied cuts that are told."""

_PRICED = 1e-4
"""Classes with a smaller share of the prices are not told."""

SIDE = 2
"""Names on a side of a cut."""

MOST_CLASSES = 4
"""Classes in one sentence."""

MOST_TOLD = 5
"""Sentences of one kind."""


def sentences(found: Sensitivity) -> tuple[str, ...]:
    """Say what holds the rate down, then what more of what gives, then what gives nothing."""
    return (
        _bottleneck(found),
        *_gains(found),
        *_sets(found),
        *_waiting(found),
        *_idle(found),
    )


def _bottleneck(found: Sensitivity) -> str:
    rate = f"{found.problem.collective.kind} runs at {found.algbw:.6g} GB/s at best"
    if not found.cuts:
        held = listing([each.words for each in found.effects if each.matters], MOST_CLASSES)
        return f"{rate}: no cut alone says so, but the prices of {held}."
    told_cuts = [_cut(found, each) for each in found.cuts]
    if len(told_cuts) == 1:
        return f"{rate}: the bottleneck cut is {told_cuts[0]}."
    return f"{rate}: {len(told_cuts)} cuts are equally full, {listing(told_cuts, MOST_CUTS)}."


def _gains(found: Sensitivity) -> Iterator[str]:
    gaining = [each for each in found.effects if each.gains]
    yield from map(_gain, gaining[:MOST_TOLD])
    others = len(gaining) - MOST_TOLD
    if others > 0:
        most = max(each.more for each in gaining[MOST_TOLD:])
        rest = "one other kind" if others == 1 else f"any of {others} other kinds"
        yield f"1 % more of {rest} gives {percent(most)} or less."


def _gain(each: Effect) -> str:
    every = f"each of its {each.many:,}" if each.many > 1 else "it"
    told = (
        f"1 % more of {each.words} gives {percent(each.more)}: {each.gain:.3g} GB/s of algbw for "
        f"each GB/s added to {every}"
    )
    kink = each.less - each.more > _PRICED
    return told + (f"; 1 % less costs {percent(each.less)}." if kink else ".")


def _sets(found: Sensitivity) -> Iterator[str]:
    yield from (_together(found, each) for each in found.together[:MOST_TOLD])
    others = len(found.together) - MOST_TOLD
    if others > 0:
        yield (
            f"So do {others} other pairs, by no more." if others > 1 else "So does one other pair."
        )


def _together(found: Sensitivity, each: Together) -> str:
    effects = [found.effects[i] for i in each.effects]
    names = listing([effect.words for effect in effects], MOST_CLASSES)
    if any(effect.gains for effect in effects):
        return f"{names} help each other: 1 % more of all gives {percent(each.more)}."
    return (
        f"Only together do {names} give anything: 1 % more of all of them gives "
        f"{percent(each.more)}."
    )


def _waiting(found: Sensitivity) -> Iterator[str]:
    """Tell of classes that alone give nothing, whose loss costs something; alike ones at once."""
    alike: dict[str, list[Effect]] = {}
    for each in found.effects:
        if each.matters and not each.gains:
            alike.setdefault(percent(each.less), []).append(each)
    for costs, effects in alike.items():
        names = listing([each.words for each in effects], MOST_CLASSES)
        cut = effects[0].cut if len(effects) == 1 else None
        why = "" if cut is None else f", since {_cut(found, cut)} stays as full"
        any_of = "" if len(effects) == 1 else "any of "
        yield f"More of {any_of}{names} alone gives nothing{why}; 1 % less costs {costs}."


def _idle(found: Sensitivity) -> Iterator[str]:
    idle = [each.words for each in found.effects if not each.matters]
    if idle:
        yield f"More or a little less of {listing(idle, MOST_CLASSES)} changes nothing."


def _cut(found: Sensitivity, cut: Cut) -> str:
    where, names = across(cut, found.problem.topology)
    return f"{cut.bandwidth:.6g} GB/s {where} {listing(names, SIDE)}"


def percent(share: Number) -> str:
    """Write an elasticity as what 1 % does: ``0.923 %``."""
    return f"{float(share):.3g} %"
