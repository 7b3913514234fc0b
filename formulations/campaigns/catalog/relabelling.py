"""Relabelling from one problem to an isomorphic one: plans, bounds, texts and stored results.

A result lies in a catalog in the names of one drawing of its problem, compressed (`pack`). What
follows from the problem and the plan is not stored: on the way out (`unpack`) the plan is verified
and replayed on the requested problem, and a bound that it beats is refused.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ccl.bound import Bound, Cut, Path
from ccl.collective import Chunk
from ccl.errors import CatalogError, ProblemError
from ccl.plans import Flow, Forest, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.result import (
    PROOF_TOLERANCE,
    ClosedForm,
    ModelSize,
    Plan,
    Result,
    Stop,
    conclude,
    keeps_chunks,
)
from ccl.serialization import topoloom, wire
from ccl.serialization.text import MOST_BYTES
from ccl.symmetry.canonical import Canonical, share_of
from ccl.symmetry.free import Symmetry


@dataclass(frozen=True)
class Relabelling:
    """A permutation of devices and ranks that leads one problem onto another.

    Parameters
    ----------
    source, target
        Isomorphic problems; their sizes in bytes may differ.
    places
        Place in the target of each device of the source, shape (devices,).
    """

    source: Problem
    target: Problem
    places: np.ndarray

    @classmethod
    def between(
        cls, source: Problem, target: Problem, *, known: Canonical, requested: Canonical
    ) -> Relabelling:
        """Return one that leads `source` onto `target`.

        Parameters
        ----------
        source, target
            Isomorphic problems.
        known, requested
            Their canonical forms, of one digest.

        Raises
        ------
        ProblemError
            If the digests differ.
        """
        if known.digest != requested.digest:
            raise ProblemError(
                f"{source.collective.kind} on {source.topology} and {target.collective.kind} on "
                f"{target.topology} are not isomorphic; relabel between problems of one digest"
            )
        places = np.empty(len(known.order), dtype=np.int64)
        places[known.order] = requested.order
        return cls(source, target, places)

    @property
    def inverse(self) -> Relabelling:
        """The same, back."""
        return Relabelling(self.target, self.source, np.argsort(self.places))

    @cached_property
    def identical(self) -> bool:
        """Whether every device, host and rank is called what it was, and chunks are numbered so."""
        before, after = self.source.topology, self.target.topology
        names = all(
            (old.name, old.host) == (after.devices[place].name, after.devices[place].host)
            for old, place in zip(before.devices, self.places.tolist(), strict=True)
        )
        return names and before.ranks == after.ranks and self._same_chunks

    def plan(self, plan: Plan) -> Plan:
        """Return a plan of the source as one of the target.

        Raises
        ------
        ProblemError
            If the target has no chunk for one of the source.
        """
        if isinstance(plan, Schedule):
            name, chunk, rank = self._names, self._chunks, self._ranks
            sends = tuple(
                Send(
                    each.epoch,
                    chunk[each.chunk],
                    name[each.src],
                    name[each.dst],
                    tuple([name[stop] for stop in each.via]),
                    each.fraction,
                    None if each.terms is None else frozenset(rank[old] for old in each.terms),
                )
                for each in plan.sends
            )
            return replace(plan, sends=sends)
        if isinstance(plan, Forest):
            symmetry = None if plan.symmetry is None else self._symmetry(plan.symmetry)
            trees, spread = self._trees(plan.trees), self._trees(plan.spread)
            return Forest(trees, plan.reduces, spread, symmetry)
        return Flow(
            tuple(
                replace(
                    each,
                    chunk=self._chunks[each.chunk],
                    src=self._names[each.src],
                    dst=self._names[each.dst],
                )
                for each in plan.rates
            )
        )

    def bound(self, bound: Bound) -> Bound:
        """Return a bound of the source as one of the target, its witness and its words too."""
        name, witness = self._names, bound.witness
        if isinstance(witness, Path):
            witness = Path(tuple(name[each] for each in witness.devices))
        elif isinstance(witness, Cut):
            index = self.target.topology.index
            inside = sorted((name[each] for each in witness.inside), key=index.__getitem__)
            witness = Cut(tuple(inside), self._ends(witness.links), witness.bandwidth)
        return replace(bound, witness=witness, reference=self.words(bound.reference))

    def closed_form(self, formula: ClosedForm) -> ClosedForm:
        """Return a formula with the link that most messages cross called as in the target."""
        if formula.busiest is None:
            return formula
        return replace(formula, busiest=self._ends([formula.busiest])[0])

    def words(self, sentence: str) -> str:
        """Return a sentence with devices and hosts called as in the target.

        Only names with a letter and a digit are known again; others may be words or numbers.
        """
        names = self._renamed
        return self._pattern.sub(lambda found: names[found[0]], sentence) if names else sentence

    @cached_property
    def _names(self) -> dict[str, str]:
        devices = self.target.topology.devices
        pairs = zip(self.source.topology.devices, self.places.tolist(), strict=True)
        return {each.name: devices[place].name for each, place in pairs}

    @cached_property
    def _renamed(self) -> dict[str, str]:
        devices = self.target.topology.devices
        pairs = list(zip(self.source.topology.devices, self.places.tolist(), strict=True))
        hosts = {each.host: devices[place].host for each, place in pairs}
        known = {old: new for old, new in hosts.items() if old and new} | self._names
        return {old: new for old, new in known.items() if re.search("[A-Za-z].*[0-9]", old)}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._renamed, key=len, reverse=True)
        return re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest_first))})(?!\w|\.\w)")

    @cached_property
    def _ranks(self) -> list[int]:
        """Image of each rank."""
        rank = self.target.topology.rank
        return [rank[self._names[name]] for name in self.source.topology.ranks]

    @property
    def _same_chunks(self) -> bool:
        before, after = self.source.collective, self.target.collective
        many = len(before.chunks)
        return many == len(after.chunks) and self._chunks == list(range(many))

    @cached_property
    def _chunks(self) -> list[int]:
        """Image of each chunk; those that are alike in the order of their numbers."""
        images: list[int] = [-1] * len(self.source.collective.chunks)
        free: dict[object, list[int]] = {}
        # From the last on, so that the first is popped first.
        whole, target = self.source.collective.size, self.target.collective
        for number in reversed(range(len(target.chunks))):
            chunk = target.chunks[number]
            key = _key(chunk, chunk.holders, chunk.destinations, whole=target.size)
            free.setdefault(key, []).append(number)
        rank = self._ranks
        for number, chunk in enumerate(self.source.collective.chunks):
            holders = [rank[each] for each in chunk.holders]
            destinations = [rank[each] for each in chunk.destinations]
            wanted = free.get(_key(chunk, holders, destinations, whole=whole))
            if not wanted:
                raise ProblemError(
                    f"chunk {number} of {self.source.collective.kind} on {self.source.topology} "
                    f"has no counterpart on {self.target.topology}; relabel between isomorphic ones"
                )
            images[number] = wanted.pop()
        return images

    def _ends(self, links: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((self._names[src], self._names[dst]) for src, dst in links)

    def _trees(self, trees: Iterable[Tree]) -> tuple[Tree, ...]:
        name, rank = self._names, self._ranks
        return tuple(
            replace(
                each,
                root=rank[each.root],
                routes=tuple(tuple([name[stop] for stop in route]) for route in each.routes),
            )
            for each in trees
        )

    def _symmetry(self, symmetry: Symmetry) -> Symmetry:
        """Return the same group on the places of the target."""
        devices = np.empty_like(symmetry.devices)
        devices[:, self.places] = self.places[symmetry.devices]
        return Symmetry(self.target.topology, devices, symmetry.powers)


def _key(
    chunk: Chunk, holders: Iterable[int], destinations: Iterable[int], *, whole: float
) -> object:
    """Return what makes chunks alike, sizes as shares of the whole."""
    return (
        share_of(chunk, whole),
        frozenset(holders),
        frozenset(destinations),
        chunk.reduced,
        chunk.priority,
        chunk.tenant,
    )


_LEVEL = 6
"""Of zlib; beyond it files shrink by little."""


class _Packed(msgspec.Struct):
    """A result of ``topoloom/1`` without its problem."""

    plan: wire.PlanJson
    bounds: list[wire.BoundJson]
    stop: str
    formulation: str
    options: dict[str, Any]
    solve_time: float
    log: list[str]
    size: wire.SizeJson | None = None
    found_by: str = ""
    closed_form: wire.ClosedFormJson | None = None


def pack(result: Result, onto: Relabelling | None) -> bytes:
    """Return a result without its problem, relabelled if `onto` is given."""
    if onto is not None:
        result = relabelled(result, onto)
    value = topoloom.result_to_json(result)
    del value["problem"]
    return squeezed(value)


def unpack(content: bytes, onto: Relabelling) -> Result:
    """Return a result of the problem that `onto` leads to, verified and replayed.

    Raises
    ------
    CclError
        If the content is damaged, or the plan breaks a rule or beats a bound.
    """
    read = _read(content)
    plan: Plan = topoloom.plan_of(read.plan, onto.source.topology)
    bounds = tuple(map(topoloom.bound_of, read.bounds))
    formula = None
    if read.closed_form is not None:
        formula = ClosedForm(**msgspec.structs.asdict(read.closed_form))
    log = tuple(read.log)
    if not onto.identical:
        plan, bounds = onto.plan(plan), tuple(map(onto.bound, bounds))
        formula = None if formula is None else onto.closed_form(formula)
        log = tuple(map(onto.words, log))
    size = read.size
    result = conclude(
        onto.target,
        plan,
        bounds=bounds,
        stop=Stop[read.stop],
        formulation=read.formulation,
        options=read.options,
        solve_time=read.solve_time,
        log=log,
        size=None if size is None else ModelSize(size.variables, size.constraints, size.nonzeros),
        ours=False,
    )
    about = [each.makespan for each in bounds if not each.whole_chunks or keeps_chunks(plan)]
    if max(about, default=0.0) > result.makespan * (1 + PROOF_TOLERANCE):
        raise CatalogError(
            f"nothing is said to be faster than {max(about):g} µs, and the plan takes "
            f"{result.makespan:g} µs"
        )
    return replace(result, found_by=read.found_by, closed_form=formula)


def bounds_in(content: bytes) -> tuple[Bound, ...]:
    """Return the bounds alone, in the names of the problem that the plan is stored for."""
    return tuple(map(topoloom.bound_of, _read(content).bounds))


def relabelled(result: Result, onto: Relabelling) -> Result:
    """Return the stored part of a result in other names; problem and replay stay as they are."""
    formula = result.closed_form
    return replace(
        result,
        plan=onto.plan(result.plan),
        bounds=tuple(map(onto.bound, result.bounds)),
        log=tuple(map(onto.words, result.log)),
        closed_form=None if formula is None else onto.closed_form(formula),
    )


def squeezed(value: dict[str, Any]) -> bytes:
    """Return plain JSON values as bytes, short and always the same."""
    return zlib.compress(msgspec.json.encode(value, order="sorted"), _LEVEL)


def problem_in(content: bytes) -> Problem:
    """Return a problem that `problem_bytes` has written."""
    return topoloom.problem_from_json(msgspec.json.decode(unsqueezed(content)))


def problem_bytes(problem: Problem) -> bytes:
    """Return a problem as bytes."""
    return squeezed(topoloom.problem_to_json(problem))


def unsqueezed(content: bytes) -> bytes:
    """Return what was compressed, no more of it than a file of ours may have."""
    reader = zlib.decompressobj()
    plain = reader.decompress(content, MOST_BYTES)
    if not reader.eof:
        raise CatalogError(f"its stored content was cut off, or has more than {MOST_BYTES:,} bytes")
    return plain


def _read(content: bytes) -> _Packed:
    try:
        read = msgspec.json.decode(unsqueezed(content), type=_Packed)
    except (zlib.error, msgspec.DecodeError) as error:
        raise CatalogError(f"its stored content is damaged: {error}") from error
    if not read.bounds or read.stop not in Stop.__members__:
        raise CatalogError(
            f"its stored content has no bound, or stopped for an unknown reason: {read.stop}"
        )
    return read
