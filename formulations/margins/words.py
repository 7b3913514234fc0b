"""What limits a cluster, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ccl.bound import Cut
from ccl.cut_words import across
from ccl.explain.writing import listing

if TYPE_CHECKING:
    from formulations.margins.planes import Number
    from formulations.margins.sensitivity import Effect, Sensitivity, Together

MOST_CUTS = 3
"""Tied cuts that are told."""

_PRICED = 1e-4
"""Classes with a smaller share of the prices are not told."""

SIDE = 2
"""Names on a side of a cut."""

MOST_CLASSES = 4
"""Classes in one sentence."""


def sentences(found: Sensitivity) -> tuple[str, ...]:
    """Say what holds the rate down, then what more of what gives, then what gives nothing."""
    return (
        _bottleneck(found),
        *(_gain(each) for each in found.effects if each.gains),
        *(_together(found, each) for each in found.together),
        *_waiting(found),
        *_idle(found),
    )


def _bottleneck(found: Sensitivity) -> str:
    rate = f"{found.problem.collective.kind} runs at {found.algbw:.6g} GB/s at most"
    if not found.cuts:
        shares = {each.words: each.price for each in found.effects if each.price > _PRICED}
        if len(shares) == 1:
            return f"{rate}: what holds it down is {next(iter(shares))}."
        held = [f"{words} ({value:.3g})" for words, value in shares.items()]
        return f"{rate}: what holds it down, with its share in the prices, is {listing(held)}."
    told = [_cut(found, each) for each in found.cuts]
    if len(told) == 1:
        return f"{rate}: the bottleneck cut is {told[0]}."
    return f"{rate}: {len(told)} cuts are equally full, {listing(told, MOST_CUTS)}."


def _gain(each: Effect) -> str:
    many = len(each.limits) or len(each.links)
    every = f"each of {many:,}" if many > 1 else "it"
    told = (
        f"1 % more of {each.words} gives {percent(each.more)}: {each.gain:.3g} GB/s of algbw for "
        f"each GB/s added to {every}"
    )
    kink = each.less - each.more > _PRICED
    return told + (f"; 1 % less costs {percent(each.less)}." if kink else ".")


def _together(found: Sensitivity, each: Together) -> str:
    effects = [found.effects[i] for i in each.effects]
    names = listing([effect.words for effect in effects], MOST_CLASSES)
    if any(effect.gains for effect in effects):
        return f"{_upper(names)} help each other: 1 % more of all gives {percent(each.more)}."
    return (
        f"Only together do {names} give anything: 1 % more of all of them gives "
        f"{percent(each.more)}, of one alone nothing."
    )


def _waiting(found: Sensitivity) -> Iterator[str]:
    """Tell of classes that alone give nothing, whose loss costs something."""
    for each in found.effects:
        if each.matters and not each.gains:
            why = "" if each.cut is None else f", since {_cut(found, each.cut)} stays as full"
            costs = f"1 % less costs {percent(each.less)}"
            yield f"More of {each.words} alone gives nothing{why}; {costs}."


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


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
