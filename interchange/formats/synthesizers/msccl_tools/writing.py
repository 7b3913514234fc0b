"""Topologies and schedules as JSON of MSCCL-tools."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.serialization.documents import Document
from ccl.serialization.text import laid_out
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify
from interchange.formats.format import NoOptions, Written, one_file
from interchange.formats.synthesizers.msccl_tools.addresses import Addresses
from interchange.formats.synthesizers.msccl_tools.matrix import Counted, counted_links
from interchange.formats.synthesizers.msccl_tools.plan import (
    FileSend,
    FileStep,
    check_rounds,
    schedule_of,
)
from interchange.formats.synthesizers.taccl.host import Told

Json = dict[str, Any]
Sends = list[tuple[int, int, int]]


class _NoPlan(Exception):
    """The plan of a document cannot be written, for the reason that is its text."""


def write(content: Document, _options: NoOptions) -> Written:
    """Write a plan with its topology, or the topology alone where there is none or it cannot be.

    Raises
    ------
    FormatError
        If the topology has no two GPUs that are joined.
    ScheduleError
        If the plan breaks a rule.
    """
    topology = content.topology
    links = counted_links(topology)
    if not links.counts:
        msg = f"{topology} has no two GPUs that are joined, and MSCCL-tools counts such links"
        raise FormatError(msg)
    value = _topology(topology, links)
    lost = _lost(topology, links)
    if content.problem is not None:
        try:
            value, more = _algorithm(content, links, value)
            lost += more
        except _NoPlan as reason:
            lost.append(f"the {content.kind}, because {reason}; the topology alone is written")
    return one_file(laid_out(value) + "\n", ending="json", lost=tuple(lost))


def _topology(topology: Topology, links: Counted) -> Json:
    return {
        "msccl_type": "topology",
        "name": topology.name,
        "switches": [[*each.sides, rate, each.name] for each, rate in links.switches],
        "links": links.matrix(len(topology.ranks)),
    }


def _lost(topology: Topology, links: Counted) -> list[str]:
    lost = [f"bandwidths in GB/s: a link that counts 1 is {links.unit:.9g} GB/s"]
    if links.rounded:
        lost.append(f"bandwidths that are no whole numbers of it, by up to {links.rounded:.1%}")
    if any(each.alpha for each in topology.links):
        lost.append("latencies of links")
    if any(each.medium for each in topology.links):
        lost.append("what links are made of")
    if any(each.host is not None for each in topology.devices):
        lost.append("which host a device is in")
    if topology.ranks != tuple(f"g{rank}" for rank in range(len(topology.ranks))):
        lost.append("names of GPUs; their order is kept")
    if any(
        links.counts.get(_ranks(topology, each), each.count) != each.count
        for each in topology.links
    ):
        lost.append("how many parallel links a link stands for")
    others = len(topology.devices) - len(topology.ranks)
    if others:
        lost.append(
            f"{others} devices that are no GPU: {links.over} pairs of GPUs are joined over them, "
            "and what they share is limited as switches of MSCCL-tools are"
        )
    if links.stricter:
        lost.append(f"{links.stricter} limits are on more pairs of GPUs than in the topology")
    if any(
        not each.copies or not each.reduces or each.buffer_bytes
        for each in topology.devices
        if each.kind == "gpu"
    ):
        lost.append("what GPUs cannot do, and their buffers")
    return lost


def _ranks(topology: Topology, link: Link) -> tuple[int, int]:
    return topology.rank.get(link.src, -1), topology.rank.get(link.dst, -1)


def _algorithm(content: Document, links: Counted, topology: Json) -> tuple[Json, list[str]]:
    """Return a plan, and what more is lost."""
    problem, plan = content.problem, content.plan
    assert problem is not None  # the caller looked
    if not isinstance(plan, Schedule):
        has = (
            "there is no plan" if plan is None else f"a {type(plan).__name__.lower()} has no steps"
        )
        raise _NoPlan(has)
    verify(problem, plan)
    kinds = {chunk.size for chunk in problem.collective.chunks}
    if max(kinds) > min(kinds) * (1 + 1e-9):
        reason = "its chunks are of different sizes"
        raise _NoPlan(reason)
    steps = _steps(problem, plan)
    rounds = [_rounds(step, links) for step in steps]
    _check(problem, links, steps, rounds)
    return _written(problem, steps, rounds, topology=topology), _lost_plan(problem, plan)


def _written(problem: Problem, steps: list[Sends], rounds: list[int], *, topology: Json) -> Json:
    """Return the algorithm."""
    addresses = Addresses(problem.collective)
    return {
        "msccl_type": "algorithm",
        "name": f"{addresses.name}-{problem.topology.name}",
        "instance": {
            "msccl_type": "instance",
            "steps": len(steps),
            "extra_rounds": sum(rounds) - len(steps),
            "chunks": addresses.per_rank,
            "pipeline": None,
            "extra_memory": None,
            "allow_exchange": False,
        },
        "input_map": addresses.input_map(),
        "output_map": addresses.output_map(),
        "steps": [
            {
                "msccl_type": "step",
                "rounds": many,
                "sends": [[addresses.of[chunk], src, dst] for chunk, src, dst in step],
            }
            for step, many in zip(steps, rounds, strict=True)
        ],
        "collective": addresses.collective(),
        "topology": topology,
    }


def _lost_plan(problem: Problem, plan: Schedule) -> list[str]:
    lost = [
        "times: a step begins when all of the one before it is there",
        f"the size: a chunk is {problem.collective.chunk_size:.9g} bytes",
    ]
    if any(each.via for each in plan.sends):
        lost.append("ways over other devices: a send is from GPU to GPU")
    if problem.windows:
        lost.append("times in which links have less bandwidth")
    if any(each.priority != 1 or each.tenant for each in problem.collective.chunks):
        lost.append("priorities and tenants of chunks")
    return lost


def _steps(problem: Problem, plan: Schedule) -> list[Sends]:
    """Return the sends between GPUs, by steps in which nothing is sent on that they bring."""
    epochs: defaultdict[int, list[Send]] = defaultdict(list)
    for send in plan.sends:
        if send.fraction < 1:
            reason = "it sends parts of chunks"
            raise _NoPlan(reason)
        epochs[send.epoch].append(send)
    run = _Run(problem)
    for epoch in sorted(epochs):
        run.epoch(epochs[epoch])
    return run.steps


class _Run:
    """Follows chunks from GPU to GPU, past devices at which they stop on the way."""

    def __init__(self, problem: Problem) -> None:
        self.rank = problem.topology.rank
        self.chunks = problem.collective.chunks
        self.steps: list[Sends] = []
        names = problem.topology.ranks
        self.origin = {
            (number, names[rank]): rank
            for number, chunk in enumerate(self.chunks)
            for rank in chunk.holders
        }

    def epoch(self, sends: list[Send]) -> None:
        """Add the steps of an epoch: what is held goes first, and then what that brings."""
        left = sends
        while left:
            step: Sends = []
            brought: dict[tuple[int, str], int] = {}
            wait: list[Send] = []
            for send in left:
                if not self._ready(send, brought):
                    wait.append(send)
                    continue
                here = self.origin[send.chunk, send.src]
                if send.dst in self.rank:
                    step.append((send.chunk, here, self.rank[send.dst]))
                    here = self.rank[send.dst]
                brought[send.chunk, send.dst] = here
            if len(wait) == len(left):
                reason = f"{left[0]} is of what its device does not hold yet"
                raise _NoPlan(reason)
            self.origin |= brought
            self.steps += [step] if step else []
            left = wait

    def _ready(self, send: Send, brought: dict[tuple[int, str], int]) -> bool:
        """Say whether a send is of what was held when the step began."""
        if self.chunks[send.chunk].reduced:
            for end in (send.src, send.dst):
                if end not in self.rank:
                    reason = f"sums of chunk {send.chunk} stop at {end}, which is no GPU"
                    raise _NoPlan(reason)
            # A sum that has just come belongs to what its device sends on.
            return (send.chunk, send.src) in self.origin and (send.chunk, send.src) not in brought
        return (send.chunk, send.src) in self.origin


def _rounds(step: Sends, links: Counted) -> int:
    """Return the rounds that the busiest link or limit needs."""
    used: defaultdict[tuple[int, int], int] = defaultdict(int)
    for _, src, dst in step:
        used[src, dst] += 1
    lacks = next((pair for pair in used if pair not in links.counts), None)
    if lacks is not None:
        reason = f"it sends from rank {lacks[0]} to rank {lacks[1]} past another GPU"
        raise _NoPlan(reason)
    most = max(many / links.counts[pair] for pair, many in used.items())
    over: defaultdict[int, int] = defaultdict(int)
    for pair, many in used.items():
        for place in links.covering[pair]:
            over[place] += many
    most = max([most, *(many / links.switches[place][1] for place, many in over.items())])
    return max(1, math.ceil(most - 1e-9))


def _check(problem: Problem, links: Counted, steps: list[Sends], rounds: list[int]) -> None:
    """Read the steps as MSCCL-tools would, and verify that they solve the problem."""
    ranks = len(problem.topology.ranks)
    made = Topology(
        "written",
        tuple(device("gpu", f"g{rank}") for rank in range(ranks)),
        tuple(Link(f"g{s}", f"g{d}", float(n), count=n) for (s, d), n in links.counts.items()),
        tuple(
            SharedLimit(
                str(place),
                tuple((f"g{src}", f"g{dst}") for src, dst in sorted(each.pairs)),
                float(rate),
            )
            for place, (each, rate) in enumerate(links.switches)
        ),
    )
    file = [
        FileStep(tuple(FileSend(*send, None) for send in step), many)
        for step, many in zip(steps, rounds, strict=True)
    ]
    numbers = {number: number for number in range(len(problem.collective.chunks))}
    try:
        copy = Problem(made, problem.collective)
        check_rounds(copy, file)
        verify(copy, schedule_of(copy, file, numbers, known=set(numbers), told=Told()))
    except (FormatError, ProblemError, ScheduleError) as error:
        reason = f"in steps it would be another: {error}"
        raise _NoPlan(reason) from None
