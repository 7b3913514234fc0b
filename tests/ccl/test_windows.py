"""Times in which links have less bandwidth. 1 MB at 50 GB/s takes 20 µs."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import Chunk, broadcast, custom, make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Forest, Schedule, Send, Tree
from ccl.problem import Problem, Window
from ccl.serialization.topoloom import problem_from_json, problem_to_json
from ccl.simulate import simulate
from ccl.simulate.routes import SlowTimes
from ccl.timeline import Timeline, Transfer
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify_timeline
from formulations.core.registry import available
from tests.ccl.clusters import MB, gpus, line, mesh, star
from tests.ccl.judging import accepted, refused, replay, send_many, send_one
from tests.ccl.planner import Planner
from tests.ccl.test_simulate_properties import instance

LINK = ("g0", "g1")


def slowed(problem, *windows):
    """The problem with windows (begin, end, share) of the link from g0 to g1."""
    made = tuple(Window((LINK,), begin, end, share) for begin, end, share in windows)
    return replace(problem, windows=made)


class TestWindow:
    @pytest.mark.parametrize(
        ("args", "told"),
        [
            (((), 0, 1, 0.5), "covers no link"),
            (((LINK, LINK), 0, 1, 0.5), "names a link twice"),
            (((LINK,), -1, 1, 0.5), "covers no time"),
            (((LINK,), 1, 1, 0.5), "from 1 to 1 µs covers no time"),
            (((LINK,), 0, math.inf, 0.5), "covers no time"),
            (((LINK,), 0, 1, 1.1), "leaves 1.1 of the bandwidth"),
            (((LINK,), 0, 1, -0.1), "give a share from 0 to 1"),
        ],
    )
    def test_nonsense_is_refused(self, args, told):
        with pytest.raises(ProblemError, match=told):
            Window(*args)

    def test_its_links_must_exist(self):
        with pytest.raises(ProblemError, match="window from 0 to 9 µs names the link g0->g2"):
            replace(send_one(line(3)), windows=(Window((("g0", "g2"),), 0, 9, 0.5),))

    def test_it_is_part_of_the_fingerprint(self):
        plain = send_one(line(2))
        prints = {slowed(plain, (0, 9, share)).fingerprint for share in (0.0, 0.5)}

        assert len(prints | {plain.fingerprint}) == 3
        assert replace(plain, windows=()).fingerprint == plain.fingerprint

    def test_it_is_written_and_read(self):
        plain = send_one(line(2))
        problem = slowed(plain, (0, 9, 0.5), (20, 40, 0.0))

        assert problem_from_json(problem_to_json(problem)) == problem
        assert "windows" not in problem_to_json(plain)

    def test_formulations_that_do_not_know_it_refuse_what_they_do_without(self):
        for each in available():
            kind = min(each.collectives - {"custom"})
            problem = Problem(line(2), make_collective(kind, 2, MB))
            reason = each.why_not(slowed(problem, (0, 9, 0.5)))
            assert each.windows or reason == each.why_not(problem)


class TestEpochs:
    """Epochs of 20 µs, each of which lets 1 MB through, or the share of it."""

    two = send_many(line(2), 2)

    def sends(self, first, second):
        return Send(first, 0, *LINK), Send(second, 1, *LINK)

    def test_nothing_gets_through_a_link_that_is_down(self):
        problem = slowed(self.two, (20, 40, 0.0))

        error = refused(problem, *self.sends(0, 1))
        assert (error.where, error.epoch) == ("g0->g1", 1)
        assert "carries 1e+06 bytes" in str(error)
        assert "its limit is 0 in an epoch" in str(error)
        assert accepted(problem, *self.sends(0, 2), horizon=3)

    def test_the_replay_waits_for_the_epoch(self):
        """The second goes from 40 to 60 µs, though the link was free until 20 and is from 40."""
        problem = slowed(self.two, (20, 40, 0.0))

        timeline = replay(problem, Schedule(self.sends(0, 2), 20, 3))

        assert [each.start for each in timeline.transfers] == [0, 40]
        assert timeline.makespan == pytest.approx(60)

    def test_nothing_waits_for_its_epoch(self):
        """What starts early may slip into a window, and ends no later for it."""
        problem = slowed(self.two, (30, 50, 0.5))

        timeline = replay(problem, Schedule(self.sends(0, 3), 20, 5))

        assert [each.start for each in timeline.transfers] == [0, 20]
        assert timeline.makespan == pytest.approx(50)

    def test_half_of_the_bandwidth_takes_two_epochs(self):
        problem = slowed(send_one(line(2)), (0, 40, 0.5))
        send = Send(0, 0, *LINK)

        assert replay(problem, Schedule((send,), 20, 2)).makespan == pytest.approx(40)
        assert refused(problem, send, horizon=1).epoch == 0

    def test_after_the_window_the_replay_is_faster_than_an_even_spread(self):
        """Half of it by 20 µs, the other half at full bandwidth in 10 µs more."""
        problem = slowed(send_one(line(2)), (0, 20, 0.5))

        timeline = replay(problem, Schedule((Send(0, 0, *LINK),), 20, 2))

        assert timeline.makespan == pytest.approx(30)

    def test_what_is_spread_over_two_epochs_fills_half_of_each(self):
        """In the second epoch the link is fast again and has room for a half, not for a whole."""
        problem = slowed(self.two, (0, 20, 0.5))

        error = refused(problem, *self.sends(0, 1))
        assert (error.where, error.epoch) == ("g0->g1", 1)
        assert accepted(problem, *self.sends(0, 2), horizon=3)

    @pytest.mark.parametrize("window", [(0, 5, 0.5), (5, 10, 0.5), (15, 25, 0.5), (19, 20, 0.5)])
    def test_a_window_that_overlaps_an_epoch_is_all_of_it(self, window):
        """Two halves of 10 µs each are too much for half of an epoch, wherever the window is."""
        problem = slowed(send_many(line(2), 2, size=MB / 2), window)

        error = refused(problem, *self.sends(0, 0), horizon=1)

        assert (error.where, error.epoch) == ("g0->g1", 0)

    @pytest.mark.parametrize("window", [(20, 40, 0.0), (40, 60, 0.0)])
    def test_one_that_touches_it_is_not(self, window):
        problem = slowed(send_many(line(2), 2, size=MB / 2), window)

        assert accepted(problem, *self.sends(0, 0), horizon=1)

    def test_of_two_windows_the_least_share_holds(self):
        problem = slowed(send_one(line(2)), (0, 100, 0.5), (10, 90, 0.25))

        assert accepted(problem, Send(0, 0, *LINK), horizon=4)
        assert refused(problem, Send(0, 0, *LINK), horizon=3)
        # 250 KB by 10 µs, then 12.5 GB/s.
        timeline = replay(problem, Schedule((Send(0, 0, *LINK),), 20, 4))
        assert timeline.makespan == pytest.approx(10 + 750 / 12.5)

    def test_other_links_keep_their_bandwidth(self):
        problem = slowed(send_one(mesh(3), 0, 2), (0, 100, 0.0))

        assert replay(problem, Schedule((Send(0, 0, "g0", "g2"),), 20, 1)).makespan == 20

    def test_a_limit_and_a_window_both_hold(self):
        """The limit leaves 25 GB/s and takes two epochs; the window 10 GB/s and takes five."""
        limit = SharedLimit("bus", (LINK,), 25)
        topology = replace(line(2), limits=(limit,))
        send = Send(0, 0, *LINK)

        assert accepted(send_one(topology), send, horizon=2)
        tight = slowed(send_one(topology), (0, 200, 0.2))
        assert replay(tight, Schedule((send,), 20, 5)).makespan == pytest.approx(100)
        assert refused(tight, send, horizon=4)
        # Half of the bandwidth is what the limit leaves anyway.
        assert accepted(slowed(send_one(topology), (0, 200, 0.5)), send, horizon=2)

    def test_a_multicast_crosses_a_slow_link_once(self):
        """At half of its bandwidth g0's link takes 40 µs, and then 1 µs of latency."""
        problem = Problem(star(4, alpha=0.5, copies=True), broadcast(4, MB))
        problem = replace(problem, windows=(Window((("g0", "s"),), 0, 60, 0.5),))
        ways = tuple(Send(0, 0, "g0", f"g{to}", ("s",)) for to in (1, 2, 3))

        assert replay(problem, Schedule(ways, 20, 3)).makespan == pytest.approx(41)
        assert refused(problem, *ways, horizon=2)

    def test_the_later_links_of_a_way_have_the_window_of_when_they_are_crossed(self):
        """After 20 µs of latency s->g1 is crossed in epoch 1: at half of its bandwidth it takes
        that one and the next, and after 20 µs more the chunk is there."""
        problem = send_one(star(2, alpha=20.0))
        way = Send(0, 0, "g0", "g1", ("s",))
        slow = replace(problem, windows=(Window((("s", "g1"),), 20, 60, 0.5),))
        early = replace(problem, windows=(Window((("s", "g1"),), 0, 20, 0.0),))

        assert replay(slow, Schedule((way,), 20, 4)).makespan == pytest.approx(80)
        assert replay(early, Schedule((way,), 20, 3)).makespan == pytest.approx(60)


class TestReplays:
    def test_a_timeline_that_slips_into_a_window_is_refused(self):
        problem = slowed(send_one(line(2)), (10, 20, 0.5))
        fast = Transfer(0, *LINK, 0.0, 20.0, 20.0, MB)

        with pytest.raises(ScheduleError, match="more than its windows let through"):
            verify_timeline(problem, Timeline((fast,), 20.0))
        slow = replace(fast, sent=25.0, end=25.0)
        verify_timeline(problem, Timeline((slow,), 25.0))

    def test_of_two_windows_at_once_the_least_share_is_let_through(self):
        """A quarter until 40 µs and half until 60: 10 and 10 of 20 µs at full bandwidth, not 20."""
        problem = slowed(send_one(line(2)), (0, 60, 0.5), (0, 40, 0.25))
        fast = Transfer(0, *LINK, 0.0, 40.0, 40.0, MB)

        for end in (40.0, 59.9):
            with pytest.raises(ScheduleError, match="more than its windows let through"):
                verify_timeline(problem, Timeline((replace(fast, sent=end, end=end),), end))
        verify_timeline(problem, Timeline((replace(fast, sent=60.0, end=60.0),), 60.0))

    def test_a_steady_plan_is_slowed_down(self):
        """Half is through after 10 µs; the other half takes 20 µs at half of the bandwidth."""
        problem = Problem(line(2), broadcast(2, MB))
        forest = Forest((Tree(0, (LINK,), 1),))

        assert simulate(problem, forest, chunks=1).makespan == pytest.approx(20)
        timeline = simulate(slowed(problem, (10, 30, 0.5)), forest, chunks=1)
        assert timeline.makespan == pytest.approx(30)

    def test_a_steady_plan_waits_for_a_link_that_is_down(self):
        """Two halves take 10 µs each from 40 µs on; the first is at half bandwidth until 45."""
        problem = slowed(Problem(line(2), broadcast(2, MB)), (0, 40, 0), (30, 45, 0.5))
        timeline = simulate(problem, Forest((Tree(0, (LINK,), 1),)), chunks=2)

        assert [each.start for each in timeline.transfers] == pytest.approx([40, 52.5])
        assert timeline.makespan == pytest.approx(62.5)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_what_a_link_sends_is_the_sum_of_its_shares(seed):
    """Added up over a thousand moments; nothing of it before the link begins."""
    rng = random.Random(seed)
    times = [sorted(rng.sample(range(100), 2)) for _ in range(rng.randint(1, 4))]
    windows = [(begin, end, rng.choice([0, 0.25, 0.5])) for begin, end in times]
    slow = SlowTimes(slowed(send_one(line(2)), *windows))
    ready, full = rng.uniform(0, 100), rng.uniform(1, 50)

    begin, sent = slow.sending(0, ready, full)

    step = (sent - ready) / 1000
    moments = [ready + (i + 0.5) * step for i in range(1000)]
    added = sum(slow.at(0, moment) for moment in moments)
    assert added * step == pytest.approx(full, abs=10 * step)
    assert all(slow.at(0, moment) == 0 for moment in moments if moment < begin)
    assert slow.at(0, begin) > 0


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_no_send_is_replayed_later_than_windows_let_it(seed):
    """Of links that have a share of their bandwidth for good; also behind switches.

    Sends over several links may hold one of those for longer than their bytes need (below).
    """
    rng = random.Random(seed)
    problem, tasks, epoch_duration = instance(seed, limited=False)
    slow = rng.sample(problem.topology.links, rng.randint(1, 3))
    shares = {link.ends: rng.choice([0.25, 0.5, 0.8]) for link in slow}
    schedule = Planner(problem, epoch_duration, shares).plan(tasks)
    windows = tuple(
        Window((ends,), 0, schedule.duration * 2, share) for ends, share in shares.items()
    )

    timeline = replay(replace(problem, windows=windows), schedule)

    held = any(send.via and not shares.keys().isdisjoint(send.hops) for send in schedule.sends)
    assert held or timeline.makespan <= schedule.duration * (1 + 1e-9)


def test_a_slow_link_is_held_while_bytes_come_to_it():
    """A chunk of 2 MB comes at 10 GB/s, for 200 µs, to a link that has 50 GB/s and half of it.

    Both chunks have room in its epochs; but it serves the second, due by 80 µs, after the first.
    """
    links = (Link("g0", "s", 10), Link("g1", "s", 50), Link("s", "g2", 50))
    topology = Topology("star", (*gpus(3), device("switch", "s")), links)
    chunks = [Chunk(2 * MB, (0,), (2,)), Chunk(MB / 2, (1,), (2,))]
    problem = Problem(topology, custom(3, chunks))
    problem = replace(problem, windows=(Window((("s", "g2"),), 0, 1000, 0.5),))
    sends = Send(0, 0, "g0", "g2", ("s",)), Send(1, 1, "g1", "g2", ("s",))

    timeline = replay(problem, Schedule(sends, 40, 6))

    assert [each.sent for each in timeline.transfers if each.dst == "g2"] == pytest.approx(
        [200, 220]
    )


def test_chunks_of_every_size_take_the_fewest_epochs():
    """At a quarter of 50 GB/s an epoch of 20 µs lets 250 KB through."""
    problem = Problem(line(2), custom(2, [Chunk(k * 250e3, (0,), (1,)) for k in (1, 2, 3)]))
    problem = slowed(problem, (0, 1000, 0.25))
    sends = Send(0, 0, *LINK), Send(1, 1, *LINK), Send(3, 2, *LINK)

    assert replay(problem, Schedule(sends, 20, 6)).makespan == pytest.approx(120)
    assert refused(problem, *sends, horizon=5)
