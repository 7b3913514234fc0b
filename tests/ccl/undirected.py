"""All-reduce along undirected trees: over each edge both ways goes the sum of the side behind it.

A tree is a list of edges of ranks. The job u -> v of a piece waits for all jobs w -> u of it but
that of v. `planned` gives jobs their epochs, `precedence` replays them by themselves: each starts
when what it waits for is there and its link is free of those that come before it in the plan.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from ccl.collective import all_reduce
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.topology import Topology
from tests.ccl.clusters import line

Edge = tuple[int, int]
Job = tuple[int, int, int]
"""A piece, and the ranks that it goes from and to."""


def jobs_of(trees: list[list[Edge]]) -> list[Job]:
    """Return all jobs, none before those that it waits for: small sums first."""
    found = [
        (len(behind(tree, edge)), piece, *edge)
        for piece, tree in enumerate(trees)
        for u, v in tree
        for edge in ((u, v), (v, u))
    ]
    return [(piece, u, v) for _, piece, u, v in sorted(found)]


def behind(tree: list[Edge], edge: Edge) -> frozenset[int]:
    """Return the side of a tree behind an edge, seen from its end."""
    near = neighbours(tree)
    found, front = {edge[0]}, [edge[0]]
    while front:
        for each in near[front.pop()]:
            if each not in found and each != edge[1]:
                found.add(each)
                front.append(each)
    return frozenset(found)


def neighbours(tree: list[Edge]) -> dict[int, set[int]]:
    """Return the neighbours of each rank of a tree."""
    near: defaultdict[int, set[int]] = defaultdict(set)
    for u, v in tree:
        near[u].add(v)
        near[v].add(u)
    return near


def before(trees: list[list[Edge]], job: Job) -> list[Job]:
    """Return what a job waits for."""
    piece, u, v = job
    return [(piece, w, u) for w in sorted(neighbours(trees[piece])[u]) if w != v]


def question(topology, trees: list[list[Edge]], size: float) -> Problem:
    """Return the all-reduce of so many bytes in a piece for each tree."""
    count = len(topology.ranks)
    assert len(trees) % count == 0
    return Problem(topology, all_reduce(count, size, chunks=len(trees) // count))


def route(topology: Topology, u: int, v: int) -> tuple[str, ...]:
    """Return the devices from a rank to another, over the switch s if no link joins them."""
    src, dst = topology.ranks[u], topology.ranks[v]
    return (src, dst) if (src, dst) in topology.link_index else (src, "s", dst)


def planned(problem: Problem, trees: list[list[Edge]]) -> Schedule:
    """Return a schedule: each job in the first epoch in which its links are free and it can go."""
    topology = problem.topology
    nbytes = problem.collective.chunk_size
    tau = min(nbytes * link.beta for link in topology.links)
    free: defaultdict[tuple[str, str], int] = defaultdict(int)
    there: dict[Job, int] = {}
    sends = []
    for job in jobs_of(trees):
        piece, u, v = job
        src, *via, dst = route(topology, u, v)
        links = [topology.link(*ends) for ends in pairwise((src, *via, dst))]
        busy = nbytes * links[0].beta
        needed = [there[each] for each in before(trees, job)]
        epoch = max([*needed, *(free[link.ends] for link in links)])
        for link in links:
            free[link.ends] = epoch + math.ceil(busy / tau - 1e-9)
        took = busy + sum(link.alpha for link in links)
        there[job] = epoch + math.ceil(took / tau - 1e-9)
        terms = behind(trees[piece], (u, v))
        sends.append(Send(epoch, piece, src, dst, tuple(via), terms=terms))
    return Schedule(tuple(sorted(sends)), tau, max(there.values()))


def precedence(problem: Problem, trees: list[list[Edge]], schedule: Schedule) -> float:
    """Return the makespan in µs with the order of the schedule on each link.

    The links of a path are alike: each begins when the first byte is there.
    """
    topology, nbytes = problem.topology, problem.collective.chunk_size
    free: defaultdict[tuple[str, str], float] = defaultdict(float)
    there: dict[Job, float] = {}
    for send in sorted(schedule.sends, key=lambda send: send.epoch):
        job = send.chunk, topology.rank[send.src], topology.rank[send.dst]
        links = [topology.link(*ends) for ends in send.hops]
        start = max([0.0, *(there[each] for each in before(trees, job))])
        start = max([start, *(free[link.ends] - k * link.alpha for k, link in enumerate(links))])
        busy = nbytes * links[0].beta
        for k, link in enumerate(links):
            free[link.ends] = start + k * link.alpha + busy
        there[job] = start + busy + sum(link.alpha for link in links)
    return max(there.values())


def one_by_one(schedule: Schedule, epochs: int) -> Schedule:
    """Return a schedule in which each send has so many epochs of its own, in the same order."""
    sends = tuple(replace(send, epoch=epochs * k) for k, send in enumerate(schedule.sends))
    return replace(schedule, sends=sends, horizon=epochs * len(sends))


def on_a_line() -> tuple[Problem, Schedule]:
    """Return the all-reduce of 3 MB along a line of three, 20 µs a send, with its plan."""
    trees = [[(0, 1), (1, 2)]] * 3
    problem = question(line(3), trees, 3e6)
    return problem, planned(problem, trees)
