"""``topoloom/1``: every noun as JSON and back.

Pure functions between nouns and plain JSON values; `ccl.serialization.documents` reads and writes
files. Reading checks the shape first (`FormatError`, with the place in the document) and then the
meaning, where the noun is made (`ProblemError`). A result is verified and replayed again. Forests
have trees with exact weights, and groups by their generators; lower bounds have their witnesses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from fractions import Fraction
from itertools import repeat
from typing import Any, TypeVar

import msgspec
import numpy as np

from ccl.bound import Bound, Cut, Path
from ccl.collective import Chunk, Collective, custom, find_arguments, make_collective, shared
from ccl.errors import FormatError
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem, Window
from ccl.result import (
    PROOF_TOLERANCE,
    ClosedForm,
    ModelSize,
    Plan,
    Result,
    Stop,
    conclude,
    true_bounds,
)
from ccl.serialization import wire
from ccl.serialization.text import describe_misfit
from ccl.symmetry import Symmetry
from ccl.topology import Link, SharedLimit, Topology, device

MOST_DIGITS = 1_000
"""Of a number in a weight. Python's own `Fraction` reads exponents as well, and computes with
10**999999999 until the end of days."""

_WEIGHT = re.compile(
    rf"\d{{1,{MOST_DIGITS}}}(?:/\d{{1,{MOST_DIGITS}}}|\.\d{{1,{MOST_DIGITS}}})?", re.ASCII
)


def forest_to_json(forest: Forest) -> Json:
    """Return a forest; out-trees and symmetry are left out where it has none."""
    value: Json = {
        "plan": "forest",
        "trees": [_tree_to_json(each) for each in forest.trees],
        "reduces": forest.reduces,
    }
    if forest.spread:
        value["spread"] = [_tree_to_json(each) for each in forest.spread]
    if forest.symmetry is not None:
        devices = forest.symmetry.devices
        value["symmetry"] = {
            "generators": [devices[place].tolist() for place in forest.symmetry.generators],
            "powers": list(forest.symmetry.powers),
        }
    return value


def forest_of(value: wire.ForestJson, topology: Topology | None) -> Forest:
    """Make a forest of its shape; one with a symmetry needs the topology that it is for."""
    symmetry = None
    if value.symmetry is not None:
        if topology is None:
            raise FormatError(
                "plan: a forest with a symmetry means nothing without its topology; add a problem"
            )
        symmetry = _symmetry_of(value.symmetry, topology)
    return Forest(_trees(value.trees), value.reduces, _trees(value.spread), symmetry)


def _symmetry_of(value: wire.SymmetryJson, topology: Topology) -> Symmetry:
    """Multiply the generators out; whether they are automorphisms is for `ccl.verify` to say."""
    many, most = len(topology.devices), len(topology.ranks)
    if len(value.generators) != len(value.powers):
        raise FormatError(
            f"plan, at symmetry: {len(value.generators)} generators and {len(value.powers)} "
            "powers; give one for each"
        )
    _check_order(value.powers, most)
    elements = np.arange(many)[None, :]
    for number, (generator, power) in enumerate(zip(value.generators, value.powers, strict=True)):
        if sorted(generator) != list(range(many)):
            raise FormatError(
                f"plan, at symmetry.generators[{number}]: it is no permutation of the places of "
                f"{many} devices"
            )
        blocks = [elements]
        for _ in range(power - 1):
            blocks.append(np.array(generator)[blocks[-1]])
        elements = np.concatenate(blocks)
    return Symmetry(topology, elements, tuple(value.powers))


def _check_order(powers: Iterable[int], most: int) -> None:
    """Refuse a group of more elements than there are GPUs, before anything is multiplied out."""
    order = 1
    for power in powers:
        order *= power
        if order > most:
            raise FormatError(
                f"plan, at symmetry: its order is {order}, and a group that leaves none of "
                f"{most} GPUs in its place has at most as many elements"
            )


def _trees(values: Iterable[wire.TreeJson]) -> tuple[Tree, ...]:
    return tuple(
        Tree(each.root, tuple(map(tuple, each.routes)), _fraction(each.weight)) for each in values
    )


def _tree_to_json(tree: Tree) -> Json:
    routes = [list(route) for route in tree.routes]
    return {"root": tree.root, "routes": routes, "weight": str(tree.weight)}


def _fraction(text: str) -> Fraction:
    try:
        if _WEIGHT.fullmatch(text):
            return Fraction(text)
    except ZeroDivisionError:
        pass
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    raise FormatError(f"plan: a tree has the weight {shown!r}; give a fraction such as 1/3")


def bound_to_json(bound: Bound) -> Json:
    """Return a bound with its witness."""
    value = json_of(bound)
    if bound.witness is not None:
        tag = type(bound.witness).__name__.lower()
        value["witness"] = {"witness": tag, **json_of(bound.witness)}
    if not bound.steady:
        del value["steady"]
    return value


def bound_of(value: wire.BoundJson) -> Bound:
    """Make a bound of its shape."""
    witness: Cut | Path | None = None
    if isinstance(value.witness, wire.CutJson):
        witness = noun_of(Cut, value.witness)
    elif value.witness is not None:
        witness = noun_of(Path, value.witness)
    return replace(noun_of(Bound, value), witness=witness)


def witness_devices(bound: Bound) -> Iterator[str]:
    """Yield every device that the witness of a bound names."""
    if isinstance(bound.witness, Path):
        yield from bound.witness.devices
    elif isinstance(bound.witness, Cut):
        yield from bound.witness.inside
        for ends in bound.witness.links:
            yield from ends


Json = dict[str, Any]
Shape = TypeVar("Shape")


def json_of(noun: Any) -> Json:
    """Return the fields of a noun by their names, tuples as lists."""
    made: Json = msgspec.to_builtins(noun)
    return made


def noun_of(kind: type[Shape], value: msgspec.Struct) -> Shape:
    """Make a noun of a shape with the same fields, whose lists are tuples in the noun."""
    given = msgspec.structs.asdict(value).items()
    return kind(**{name: tuple(each) if isinstance(each, list) else each for name, each in given})


def topology_to_json(topology: Topology) -> Json:
    """Return a topology as the canvas edits it and files keep it."""
    return {
        "name": topology.name,
        "devices": [json_of(each) for each in topology.devices],
        "links": [json_of(each) for each in topology.links],
        "limits": limits_to_json(topology.limits),
    }


def limits_to_json(limits: Iterable[SharedLimit]) -> list[Json]:
    """Return shared limits."""
    return [json_of(each) for each in limits]


def limits_of(values: Iterable[wire.LimitJson]) -> tuple[SharedLimit, ...]:
    """Make shared limits of their shapes."""
    return tuple(noun_of(SharedLimit, each) for each in values)


def topology_from_json(value: Any) -> Topology:
    """Read a topology.

    Raises
    ------
    FormatError
        If the shape is wrong.
    ProblemError
        If it has the shape of a topology and is invalid.
    """
    return topology_of(shaped(value, wire.TopologyJson, "topology"))


def problem_to_json(problem: Problem) -> Json:
    """Return a problem: topology, collective and, where there are any, windows."""
    value: Json = {
        "topology": topology_to_json(problem.topology),
        "collective": collective_to_json(problem.collective),
    }
    if problem.windows:
        value["windows"] = [json_of(each) for each in problem.windows]
    return value


def problem_from_json(value: Any) -> Problem:
    """Read a problem; errors as `topology_from_json`."""
    return problem_of(shaped(value, wire.ProblemJson, "problem"))


def collective_to_json(collective: Collective) -> Json:
    """Return a collective, by its name where its name and numbers make it again."""
    start: Json = {"kind": collective.kind, "size": collective.size}
    if collective.whole:
        start["whole"] = True
    named = find_arguments(collective)
    if named is not None:
        return start | {"chunks": named[0], "root": named[1]}
    return start | {"chunks": [_chunk_to_json(each) for each in collective.chunks], "root": 0}


def _chunk_to_json(chunk: Chunk) -> Json:
    """Return a chunk; priority and tenant are left out where they are the default."""
    value = json_of(chunk)
    if chunk.priority == 1:
        del value["priority"]
    if not chunk.tenant:
        del value["tenant"]
    return value


def plan_to_json(plan: Plan) -> Json:
    """Return a plan, tagged by its type."""
    if isinstance(plan, Schedule):
        cut: Json = {} if plan.chunks is None else {"chunks": plan.chunks}
        if any(each.terms is not None for each in plan.sends):
            cut["terms"] = [each.terms and sorted(each.terms) for each in plan.sends]
        return cut | {
            "plan": "schedule",
            "epoch_duration": plan.epoch_duration,
            "horizon": plan.horizon,
            "sends": [
                [each.epoch, each.chunk, [each.src, *each.via, each.dst], each.fraction]
                for each in plan.sends
            ],
        }
    if isinstance(plan, Forest):
        return forest_to_json(plan)
    rates = [[each.chunk, each.src, each.dst, each.amount] for each in plan.rates]
    return {"plan": "flow", "rates": rates}


def plan_from_json(value: Any, topology: Topology | None = None) -> Plan:
    """Read a plan; whether it answers a problem is for `ccl.verify` to say.

    Parameters
    ----------
    value
        JSON values.
    topology
        What it is for; only a forest with a symmetry cannot be read without.
    """
    return plan_of(shaped(value, wire.PlanJson, "plan"), topology)


def result_to_json(result: Result) -> Json:
    """Return a result; what follows from the plan is written for people only."""
    return {
        "problem": problem_to_json(result.problem),
        "plan": plan_to_json(result.plan),
        "bounds": [bound_to_json(each) for each in result.bounds],
        "stop": result.stop.name,
        "formulation": result.formulation,
        "options": dict(result.options),
        "solve_time": result.solve_time,
        "log": list(result.log),
        "size": None if result.size is None else json_of(result.size),
        "makespan": result.makespan,
        **({"found_by": result.found_by} if result.found_by else {}),
        **({"closed_form": asdict(result.closed_form)} if result.closed_form else {}),
    }


def result_from_json(value: Any) -> Result:
    """Read a result; its plan is verified and replayed again.

    Raises
    ------
    ScheduleError
        If the plan breaks a rule of its problem.
    """
    return result_of(shaped(value, wire.ResultJson, "result"))


def shaped(value: Any, shape: type[Shape] | Any, what: str) -> Any:
    """Convert plain JSON values to a wire shape.

    Raises
    ------
    FormatError
        With the place where the value is not of the shape.
    """
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise FormatError(f"{what}, {describe_misfit(error)}") from None


def topology_of(value: wire.TopologyJson) -> Topology:
    """Make a topology of its shape; the meaning is checked here."""
    return Topology(
        value.name,
        tuple(device(**msgspec.structs.asdict(each)) for each in value.devices),
        tuple(Link(*msgspec.structs.astuple(each)) for each in value.links),
        limits_of(value.limits),
    )


def problem_of(value: wire.ProblemJson) -> Problem:
    """Make a problem of its shape; the meaning is checked here."""
    topology = topology_of(value.topology)
    windows = tuple(noun_of(Window, each) for each in value.windows)
    return Problem(topology, _collective(value.collective, len(topology.ranks)), windows)


def _collective(value: wire.CollectiveJson, ranks: int) -> Collective:
    if isinstance(value.chunks, int):
        made = make_collective(value.kind, ranks, value.size, chunks=value.chunks, root=value.root)
        return replace(made, whole=value.whole)
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    chunks = tuple(shared(noun_of(Chunk, each), same) for each in value.chunks)
    if value.kind == "custom":
        return replace(custom(ranks, chunks), whole=value.whole)
    return Collective(value.kind, ranks, value.size, chunks, whole=value.whole)


def plan_of(value: wire.PlanJson, topology: Topology | None) -> Plan:
    """Make a plan of its shape; whether it answers a problem is for `ccl.verify` to say."""
    if isinstance(value, wire.ScheduleJson):
        return Schedule(
            tuple(map(_send, value.sends, _terms(value))),
            value.epoch_duration,
            value.horizon,
            value.chunks,
        )
    if isinstance(value, wire.ForestJson):
        return forest_of(value, topology)
    return Flow(tuple(Rate(*each) for each in value.rates))


def _terms(value: wire.ScheduleJson) -> Iterator[frozenset[int] | None]:
    """Yield the terms of each send, equal ones as one set."""
    if not value.terms:
        yield from repeat(None, len(value.sends))
        return
    if len(value.terms) != len(value.sends):
        raise FormatError(
            f"plan, at terms: {len(value.terms):,} for {len(value.sends):,} sends; give each its "
            "ranks, or null"
        )
    same: dict[frozenset[int], frozenset[int]] = {}
    for number, ranks in enumerate(value.terms):
        if ranks is None:
            yield None
            continue
        terms = frozenset(ranks)
        if len(terms) < len(ranks):
            raise FormatError(f"plan, at terms[{number}]: {ranks} has a rank twice; name each once")
        yield same.setdefault(terms, terms)


def _send(value: tuple[int, int, list[str], float], terms: frozenset[int] | None) -> Send:
    epoch, chunk, route, fraction = value
    if len(route) < 2:
        raise FormatError(
            f"plan: a send of chunk {chunk} in epoch {epoch} goes along {route}; name two devices"
        )
    return Send(epoch, chunk, route[0], route[-1], tuple(route[1:-1]), fraction, terms)


def result_of(value: wire.ResultJson) -> Result:
    """Make a result of its shape; its plan is verified and replayed again."""
    if not value.bounds:
        raise FormatError(
            "result, at bounds: there is none; a result needs one lower bound or more"
        )
    if value.stop not in Stop.__members__:
        raise FormatError(
            f"result, at stop: {value.stop!r} is unknown; there are {', '.join(Stop.__members__)}"
        )
    problem = problem_of(value.problem)
    bounds = tuple(bound_of(each) for each in value.bounds)
    result = conclude(
        problem,
        plan_of(value.plan, problem.topology),
        # Those on steady states are compared with the plan's own below, as a file may be wrong.
        bounds=tuple(each for each in bounds if not each.steady),
        stop=Stop[value.stop],
        formulation=value.formulation,
        options=value.options,
        solve_time=value.solve_time,
        log=tuple(value.log),
        size=None if value.size is None else noun_of(ModelSize, value.size),
        ours=False,
    )
    _check_told(value, result)
    return replace(
        result,
        bounds=true_bounds(problem, result.plan, bounds, makespan=result.makespan, ours=False),
        found_by=value.found_by,
        closed_form=None if value.closed_form is None else noun_of(ClosedForm, value.closed_form),
    ).stopped()


def _check_told(value: wire.ResultJson, result: Result) -> None:
    """Refuse what a result claims and its verified plan shows to be untrue."""
    _check_bounds(value, result)
    claimed = value.makespan
    if claimed is not None and not math.isclose(claimed, result.makespan, rel_tol=PROOF_TOLERANCE):
        raise FormatError(
            f"result, at makespan: it says {claimed:g} µs and the plan, replayed, takes "
            f"{result.makespan:g} µs; write that or leave it out"
        )
    topology = result.problem.topology
    for bound in result.bounds:
        for name in witness_devices(bound):
            if name not in topology.index:
                raise FormatError(
                    f"result, at bounds: the witness of {bound.makespan:g} µs names {name!r}, "
                    f"which is not a device of {topology}; solve it again"
                )


def _check_bounds(value: wire.ResultJson, result: Result) -> None:
    """Refuse a bound that the plan beats, one on steady states with its own."""
    takes = [(result.makespan, False, "nothing")]
    if result.steady_makespan is not None:
        takes.append((result.steady_makespan, True, "no steady state"))
    for number, claimed in enumerate(value.bounds):
        for took, steady, what in takes:
            if claimed.steady >= steady and claimed.makespan > took * (1 + PROOF_TOLERANCE):
                raise FormatError(
                    f"result, at bounds[{number}].makespan: {what} is faster than "
                    f"{claimed.makespan:g} µs, and the plan, verified, takes {took:g} µs; "
                    "solve it again"
                )
