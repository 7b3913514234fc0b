"""A program of puts that was tampered with is found wrong where a second opinion says so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import solve
from interchange.execution.one_sided import execute_one_sided
from interchange.programs.one_sided import PUT_OPERATIONS, Channel, Options, lower_one_sided
from tests.ccl.clusters import mesh, ring
from tests.interchange.execution.puts_oracle import verdict_of_puts

EACH = 30
"""Edits of a program."""


def hosts(topology):
    """Return a cluster with a host for each GPU."""
    devices = tuple(replace(each, host=each.name) for each in topology.devices)
    return replace(topology, devices=devices)


MADE = {
    "a ring of three adds up in place": (ring(3), "all-reduce", Options(in_place=True)),
    "a mesh of three adds up": (mesh(3), "all-reduce", Options()),
    "a ring of three gathers": (ring(3), "all-gather", Options()),
    "a ring of three exchanges": (ring(3), "all-to-all", Options()),
    "a mesh of three scatters sums": (mesh(3), "reduce-scatter", Options(in_place=True)),
    "a ring of hosts adds up in place": (hosts(ring(3)), "all-reduce", Options(in_place=True)),
    "hosts gather": (hosts(mesh(3)), "all-gather", Options()),
}


def made(name):
    """Return the program of a plan."""
    topology, kind, options = MADE[name]
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    return lower_one_sided(problem, solve(problem, "list", time_limit=0.2).plan, options)


def edited(program, chance):
    """Return words and the program with one random edit."""
    while True:
        rank = chance.randrange(len(program.ranks))
        was = program.ranks[rank]
        block = chance.randrange(len(was.blocks))
        ops = list(was.blocks[block])
        at = chance.randrange(len(ops))
        edit = chance.choice(EDITS)
        if edit in (_size, _semaphore, _channel):
            changed = edit(was, chance)
        else:
            edit(ops, at, chance)
            blocks = (*was.blocks[:block], tuple(ops), *was.blocks[block + 1 :])
            changed = replace(was, blocks=blocks)
        ranks = (*program.ranks[:rank], changed, *program.ranks[rank + 1 :])
        if changed != was:
            words = f"{edit.__name__} at rank {rank}, thread block {block}, step {at}"
            return words, replace(program, ranks=ranks)


def _drop(ops, at, _):
    del ops[at]


def _repeat(ops, at, _):
    ops.insert(at, ops[at])


def _swap(ops, at, _):
    other = (at + 1) % len(ops)
    ops[at], ops[other] = ops[other], ops[at]


def _move(ops, at, chance):
    ops.insert(chance.randrange(len(ops)), ops.pop(at))


def _rename(ops, at, chance):
    ops[at] = replace(ops[at], name=chance.choice([n for n in PUT_OPERATIONS if n != "barrier"]))


def _other_channel(ops, at, chance):
    ops[at] = replace(ops[at], channels=tuple(c + chance.choice((-1, 1)) for c in ops[at].channels))


def _other_semaphore(ops, at, chance):
    moved = tuple(s + chance.choice((-1, 1)) for s in ops[at].semaphores)
    ops[at] = replace(ops[at], semaphores=moved)


def _other_cells(ops, at, chance):
    name = chance.choice(("src", "dst"))
    told = list(getattr(ops[at], name))
    if told:
        place = chance.randrange(len(told))
        was = told[place]
        told[place] = chance.choice(
            (
                replace(was, index=was.index + chance.choice((-1, 1, 2))),
                replace(was, count=was.count + chance.choice((-1, 1))),
                replace(was, buffer=chance.choice(("input", "output", "scratch"))),
                replace(was, rank=chance.choice((None, 0, 1, 2))),
            )
        )
        ops[at] = replace(ops[at], **{name: tuple(told)})


def _size(rank, chance):
    name = chance.choice(("input", "output", "scratch"))
    return replace(rank, **{name: max(0, getattr(rank, name) + chance.choice((-1, 1)))})


def _semaphore(rank, chance):
    values = [max(0, value + chance.choice((0, 1))) for value in rank.semaphores]
    return replace(rank, semaphores=tuple(values))


def _channel(rank, chance):
    channels = list(rank.channels)
    place = chance.randrange(len(channels))
    channels[place] = Channel(channels[place].kind, chance.randrange(4))
    return replace(rank, channels=tuple(channels))


EDITS = (
    *(_drop,) * 4,
    _repeat,
    *(_swap,) * 3,
    _move,
    _rename,
    *(_other_channel,) * 2,
    *(_other_semaphore,) * 2,
    *(_other_cells,) * 4,
    _size,
    _semaphore,
    _channel,
)


@pytest.mark.parametrize("name", MADE)
def test_every_edit_is_found_or_proved_to_be_right_all_the_same(name):
    """The oracle proves by the closure of all orderings and by multisets of contributions.

    It and the interpreter must agree on the program and on each edit, both ways.
    """
    program, chance = made(name), random.Random(name)
    assert verdict_of_puts(program) is None
    found = 0
    for _ in range(EACH):
        words, mutant = edited(program, chance)
        why, execution = verdict_of_puts(mutant), execute_one_sided(mutant, interleavings=8)
        assert execution.ok == (why is None), (words, why, execution.findings)
        found += not execution.ok
    assert found > EACH / 2


@pytest.mark.parametrize("name", ["a ring of three gathers", "a mesh of three scatters sums"])
def test_no_meeting_of_threads_is_there_in_vain(name):
    """Each ``nop`` of these is needed: what is left out is found, one after the other."""
    program = made(name)
    meetings = [each for each in program.ops() if each[3].name == "nop"]
    assert meetings
    for rank, block, number, _ in meetings:
        was = program.ranks[rank]
        ops = (*was.blocks[block][:number], *was.blocks[block][number + 1 :])
        blocks = (*was.blocks[:block], ops, *was.blocks[block + 1 :])
        ranks = list(program.ranks)
        ranks[rank] = replace(was, blocks=blocks)
        assert not execute_one_sided(replace(program, ranks=tuple(ranks)), interleavings=4).ok
