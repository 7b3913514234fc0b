"""The machine beneath: counters that several threads post, barriers, queues and their orders."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import numpy as np
import pytest

from interchange.execution.blocks import (
    AnyOfThem,
    AsFarAsItGoes,
    Interpreter,
    LastFirst,
    Ranked,
    Walk,
    deadlock,
    finishing_order,
    shuffled,
)
from interchange.execution.hazards import hazards
from interchange.execution.machine import Action, Effect, Machine, Thread


def machine(*threads, counters=1, cells=8):
    """Return a machine of threads, each a list of actions, on ranks of their own."""
    made = tuple(Thread(rank, 0, tuple(actions)) for rank, actions in enumerate(threads))
    names = tuple(f"signal {number} of value {{0}}" for number in range(counters))
    return Machine(made, names, cells, cells, lambda cell: f"cell {cell}")


def act(step=0, *, waits=(), posts=(), writes=None, reads=()):
    """Return an action that waits for ``(counter, value)``, copies or adds up cells, and posts."""
    effects = () if writes is None else (Effect(writes, tuple(reads), 1),)
    return Action(step, tuple(waits), (), tuple(posts), effects)


def races(those):
    """Return the cells of its hazards."""
    return [each.cell for each in hazards(those, finishing_order(those, slots=None))]


def test_a_barrier_orders_all_that_is_before_with_all_that_is_behind():
    """Each of three threads posts once and waits for all three posts."""
    threads = [
        [
            act(0, posts=[0], writes=rank, reads=[rank + 3]),
            act(1, waits=[(0, 3)], writes=rank + 3, reads=[(rank + 1) % 3]),
        ]
        for rank in range(3)
    ]

    assert races(machine(*threads)) == []


def test_a_wait_for_fewer_posts_than_there_are_orders_nobody():
    """Either of two posts may be the first of them, so cell 0 may be read before it is written."""
    first = [act(posts=[0], writes=0, reads=[3])]
    second = [act(posts=[0], writes=1, reads=[3])]
    reader = [act(0, waits=[(0, 1)]), act(1, writes=2, reads=[0])]

    assert races(machine(first, second, reader)) == [0]
    both = [act(0, waits=[(0, 2)]), act(1, writes=2, reads=[0])]
    assert races(machine(first, second, both)) == []


def test_posts_of_one_thread_come_in_its_order():
    """The second post of two is needed for the value 2, and so is the first."""
    poster = [act(0, posts=[0], writes=0, reads=[3]), act(1, posts=[0], writes=1, reads=[3])]

    def reader(value, cell):
        return [act(0, waits=[(0, value)]), act(1, writes=4, reads=[cell])]

    assert races(machine(poster, reader(2, 1))) == []
    assert races(machine(poster, reader(1, 0))) == []
    assert races(machine(poster, reader(1, 1))) == [1]


def test_order_reaches_through_threads_that_touch_nothing():
    """Thread 0 writes and tells 1, which tells 2, which reads."""
    through = machine(
        [act(posts=[0], writes=0, reads=[3])],
        [act(0, waits=[(0, 1)]), act(1, posts=[1])],
        [act(0, waits=[(1, 1)]), act(1, writes=2, reads=[0])],
        counters=2,
    )
    cut = machine(
        [act(posts=[0], writes=0, reads=[3])],
        [act(0), act(1, posts=[1])],
        [act(0, waits=[(1, 1)]), act(1, writes=2, reads=[0])],
        counters=2,
    )

    assert races(through) == []
    assert races(cut) == [0]


def test_room_orders_nothing():
    """What waits only for room in a connection may not rely on it."""
    limited = Action(1, (), ((0, 1),), (), (Effect(2, (0,), 1),))
    pair = machine([act(posts=[0], writes=0, reads=[3])], [act(), limited])

    assert len(finishing_order(pair, slots=0)) == 3
    assert races(pair) == [0]


def test_hazards_are_those_of_all_pairs():
    """On random machines the clocks find a hazard exactly where some pair of all is unordered.

    Which pairs are ordered is asked of all orders: an action is before another only if removing
    it, and what follows it in its thread, keeps the other from ever happening.
    """
    chance = random.Random(7)
    found = 0
    for _ in range(150):
        those = _random_machine(chance)
        pairs = hazards(those, finishing_order(those, slots=None))
        racing = {
            (one, other)
            for one in range(len(those.actions))
            for other in range(one)
            if _conflict(those, one, other) and not _ordered(those, one, other)
        }
        assert bool(pairs) == bool(racing)
        assert {(max(p.before, p.after), min(p.before, p.after)) for p in pairs} <= racing
        found += bool(pairs)

    assert 30 < found < 120


def _random_machine(chance):
    """Return four threads that signal one another, a counter for each thread, and share cells."""
    threads: list[list[Action]] = [[] for _ in range(4)]
    posted, cells = [0] * 4, chance.choice((6, 40, 200))
    for step in range(16):
        thread = chance.randrange(4)
        others = [each for each in range(4) if each != thread and posted[each]]
        waits = [(each, posted[each]) for each in others if chance.random() < 0.8]
        uses = {"writes": chance.randrange(cells), "reads": [chance.randrange(cells)]}
        threads[thread].append(act(step, waits=waits, posts=[thread], **uses))
        posted[thread] += 1
    return machine(*threads, counters=4, cells=cells)


def _conflict(those, one, other):
    if those.owners[one] == those.owners[other]:
        return False
    cells = [list(those.touched(each)) for each in (one, other)]
    return any(a == b and (w or v) for a, _, w in cells[0] for b, _, v in cells[1])


def _ordered(those, one, other):
    """Say whether one of two actions cannot happen while the other has not."""
    return any(last not in _without(those, lost) for lost, last in ((one, other), (other, one)))


def _without(those, lost):
    """Return what happens if a thread stops before an action."""
    stopped = list(those.threads)
    thread = those.owners[lost]
    never = Action(99, ((len(those.counters), 1),))
    kept = list(stopped[thread].actions)
    kept[lost - those.starts[thread]] = never
    stopped[thread] = Thread(thread, 0, tuple(kept))
    halted = Machine(tuple(stopped), (*those.counters, "nobody"), those.cells, those.cells, str)
    return set(finishing_order(halted, slots=None))


def test_five_thousand_threads_and_a_hundred_thousand_actions_take_less_than_20_s():
    """Thread t reads at step k what thread t - 1 wrote at step k, for which it waits.

    All 5,000 share cells with their neighbours, so every clock has 5,000 columns.
    """
    those = chained(5000, 20)

    began = time.perf_counter()
    assert races(those) == []
    assert time.perf_counter() - began < 20


def test_one_missing_wait_among_many_is_found():
    assert races(chained(300, 20, without=(123, 19))) == [122 * 20 + 19]


def chained(many, steps, without=None):
    """Return a machine in which each thread follows the one before, step by step."""
    threads = []
    for t in range(many):
        own = []
        for k in range(steps):
            waits = [] if t == 0 or (t, k) == without else [(t - 1, k + 1)]
            reads = [max(t - 1, 0) * steps + k]
            own.append(act(k, waits=waits, posts=[t], writes=t * steps + k, reads=reads))
        threads.append(own)
    return machine(*threads, counters=many, cells=many * steps)


def test_a_wait_for_what_nobody_posts_is_told():
    stuck = machine([act(0), act(3, waits=[(0, 2)])], [act(posts=[0])])
    order = finishing_order(stuck, slots=None)

    assert deadlock(stuck, order, slots=None).sentence == (
        "deadlock: rank 0, thread block 0, step 3 waits for signal 0 of value 2, which never comes"
    )
    assert deadlock(machine([act()]), [0], slots=None) is None


@pytest.mark.parametrize("number", range(8))
def test_every_manner_of_queue_walks_all_actions_in_an_order_that_may_happen(number):
    """Threads of 5 actions, each of which waits for the same action of the thread before."""
    threads = [
        [act(step, waits=[(t - 1, step + 1)] if t else [], posts=[t]) for step in range(5)]
        for t in range(6)
    ]
    those = machine(*threads, counters=6)
    order = list(Walk(those, slots=None)(shuffled(those, number=number, seed=1)))

    assert sorted(order) == list(range(30))
    assert all(order.index(at - 5) < order.index(at) for at in range(5, 30))
    assert all(order.index(at) < order.index(at + 1) for at in range(29) if at % 5 < 4)


def test_manners_differ():
    """Threads that wait for nobody: one by one, mixed, or in the order of their weights."""
    those = machine(*[[act(step) for step in range(4)] for _ in range(5)])
    walk = Walk(those, slots=None)

    def changes(queue):
        threads = [those.owners[action] for action in walk(queue)]
        return sum(one != other for one, other in pairwise(threads))

    assert changes(LastFirst()) == changes(AsFarAsItGoes(random.Random(0))) == 4
    assert changes(AnyOfThem(random.Random(0))) > 8
    weights = [0.5, 0.1, 0.9, 0.3, 0.7]
    assert [those.owners[action] for action in walk(Ranked(weights))][::4] == [1, 3, 0, 4, 2]


def test_effects_copy_and_add_up_in_order():
    """Cell 4 becomes 1 + 2, cell 5 a copy of it, and cell 0 itself and all others."""
    effects = (Effect(4, (0, 1), 1), Effect(5, (4,), 1), Effect(0, (2, 0, 4, 5), 1))
    those = machine([Action(0, (), (), (), effects)], cells=6)
    start = np.array([[1], [2], [10], [0], [0], [0]])

    assert Interpreter(those, start).run([0])[:, 0].tolist() == [17, 2, 10, 0, 3, 3]
    assert start[0, 0] == 1


def test_sums_of_floats_are_rounded_in_their_order():
    """1 is lost beside 2^24 in float32, and 2 is not: (2^24 + 1) + 1 is not 1 + 1 + 2^24."""
    start = np.array([[2**24], [1], [1], [0]], np.float32)

    def added(*sources):
        those = machine([Action(0, (), (), (), (Effect(3, sources, 1),))], cells=4)
        return Interpreter(those, start).run([0])[3, 0]

    assert added(0, 1, 2) == 2**24
    assert added(1, 2, 0) == 2**24 + 2
