"""Chunks have priorities, and several jobs share a cluster."""

import math
from dataclasses import replace

import pytest

from ccl.collective import (
    Chunk,
    Tenant,
    all_gather,
    all_to_all,
    broadcast,
    custom,
    reduce_scatter,
    tenants,
)
from ccl.errors import FormatError, ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import document, document_text, parse_document
from ccl.serialization.topoloom import collective_to_json, problem_from_json, problem_to_json
from ccl.simulate import simulate
from ccl.timeline import finish_times
from ccl.verify import verify
from formulations import solve
from tests.ccl.clusters import MB, line, mesh, ring


class TestPriority:
    @pytest.mark.parametrize("priority", [0.0, -1.0, math.inf, math.nan])
    def test_is_positive(self, priority):
        with pytest.raises(ProblemError, match=f"chunk 0 has the priority {priority}; give a posi"):
            custom(2, [Chunk(MB, (0,), (1,), priority=priority)])

    def test_makes_another_problem(self):
        chunk = Chunk(MB, (0,), (1,))
        plain, urgent = (
            Problem(ring(2), custom(2, [each])) for each in (chunk, replace(chunk, priority=2.0))
        )

        assert plain.fingerprint != urgent.fingerprint

    @pytest.mark.parametrize(
        "chunk",
        [
            Chunk(MB, (0,), (2,), priority=3.0, tenant="a"),
            Chunk(MB, (0,), (1, 2), priority=3.0, tenant="a"),
            Chunk(MB, (0, 1, 2), (0,), reduced=True, priority=3.0, tenant="a"),
        ],
    )
    def test_is_kept_by_the_mirror(self, chunk):
        [mirrored] = custom(3, [chunk]).reversed().chunks

        assert (mirrored.priority, mirrored.tenant) == (3.0, "a")
        assert custom(3, [mirrored]).reversed().chunks == (chunk,)


class TestFormat:
    def test_leaves_out_what_says_nothing(self):
        plain, urgent = Chunk(MB, (0,), (1,)), Chunk(MB, (1,), (0,), priority=2.5, tenant="a")

        first, second = collective_to_json(custom(2, [plain, urgent]))["chunks"]

        assert set(first) == {"size", "holders", "destinations", "reduced"}
        assert (second["priority"], second["tenant"]) == (2.5, "a")

    def test_reads_what_it_wrote(self):
        job = Tenant("a", all_gather(2, MB), (2, 0), priority=4.0)
        problem = Problem(ring(3), tenants(3, [job]))

        assert problem_from_json(problem_to_json(problem)) == problem
        assert parse_document(document_text(document(problem))).problem == problem

    def test_a_named_collective_with_a_priority_keeps_it(self):
        made = all_gather(3, 3 * MB)
        urgent = replace(made, chunks=(replace(made.chunks[0], priority=2.0), *made.chunks[1:]))

        assert problem_from_json(problem_to_json(Problem(ring(3), urgent))).collective == urgent

    def test_refuses_a_priority_of_zero_with_its_place(self):
        value = problem_to_json(Problem(ring(2), custom(2, [Chunk(MB, (0,), (1,), priority=2.0)])))
        value["collective"]["chunks"][0]["priority"] = 0.0

        with pytest.raises(FormatError, match="priority"):
            problem_from_json(value)


class TestTenants:
    def test_join_collectives_on_ranks_of_their_own(self):
        """An all-to-all of 2 on ranks 3 and 1, a broadcast of 3 from rank 0, twice as urgent."""
        jobs = [
            Tenant("swap", all_to_all(2, 2 * MB), (3, 1)),
            Tenant("cast", broadcast(3, 5 * MB), (0, 1, 2), priority=2.0),
        ]

        made = tenants(4, jobs)

        assert (made.kind, made.ranks, made.size) == ("custom", 4, 7 * MB)
        assert made.chunks == (
            Chunk(MB, (3,), (1,), tenant="swap"),
            Chunk(MB, (1,), (3,), tenant="swap"),
            Chunk(5 * MB, (0,), (1, 2), priority=2.0, tenant="cast"),
        )

    def test_priorities_of_chunks_and_tenants_multiply(self):
        urgent = custom(2, [Chunk(MB, (0,), (1,), priority=3.0)])

        assert tenants(2, [Tenant("a", urgent, (1, 0), 2.0)]).chunks[0].priority == 6.0

    @pytest.mark.parametrize(
        ("jobs", "says"),
        [
            ([], "moves nothing"),
            ([Tenant(" ", all_to_all(2, MB), (0, 1))], "called ' '; give each tenant a name"),
            ([Tenant("a", all_to_all(2, MB), (0, 1))] * 2, "called 'a'; give each tenant a name"),
            (
                [Tenant("a", all_to_all(2, MB), (0, 1, 2))],
                r"tenant a has the ranks \[0, 1, 2\] and its all-to-all is for 2; give 2 different",
            ),
            ([Tenant("a", all_to_all(2, MB), (1, 1))], r"ranks \[1, 1\] .* give 2 different ones"),
            ([Tenant("a", all_to_all(2, MB), (1, 3))], r"ranks \[1, 3\]; ranks go from 0 to 2"),
            ([Tenant("a", all_to_all(2, MB), (-1, 1))], r"ranks \[-1, 1\]; ranks go from 0 to 2"),
            ([Tenant("a", all_to_all(2, MB), (0, 1), 0.0)], "tenant a has the priority 0.0; give"),
        ],
    )
    def test_refuses(self, jobs, says):
        with pytest.raises(ProblemError, match=says):
            tenants(3, jobs)

    def test_sums_and_copies_of_two_tenants_are_solved_together(self):
        """1 MB shards of 2 ranks on links of 50 GB/s of their own: 20 µs, for both at once."""
        jobs = [
            Tenant("gather", all_gather(2, 2 * MB), (0, 1)),
            Tenant("sum", reduce_scatter(2, 2 * MB), (2, 3)),
        ]

        result = solve(Problem(mesh(4), tenants(4, jobs)), "te-ccl-milp", time_limit=20)

        done = finish_times(result.problem, result.timeline)
        assert done == pytest.approx({"gather": 20.0, "sum": 20.0})


class TestFinishTimes:
    def test_of_each_tenant_is_its_last_arrival(self):
        """1 MB takes 20 µs a hop: b is over one hop at 20 µs, a over two at 40 µs."""
        jobs = [
            Tenant("a", custom(2, [Chunk(MB, (0,), (1,))]), (0, 2)),
            Tenant("b", custom(2, [Chunk(MB, (0,), (1,))]), (2, 1)),
        ]
        problem = Problem(line(3), tenants(3, jobs))
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2"), Send(0, 1, "g2", "g1")
        schedule = Schedule(sends, 20, 2)
        verify(problem, schedule)

        timeline = simulate(problem, schedule)

        assert finish_times(problem, timeline) == pytest.approx({"a": 40.0, "b": 20.0})
        assert max(finish_times(problem, timeline).values()) == timeline.makespan

    def test_counts_no_byte_that_nobody_needs(self):
        problem = Problem(line(3), custom(3, [Chunk(MB, (0,), (1,))]))
        sends = Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")

        timeline = simulate(problem, Schedule(sends, 20, 2))

        assert finish_times(problem, timeline) == pytest.approx({"": 20.0})

    def test_a_tenant_that_has_everything_is_done_at_once(self):
        chunks = [Chunk(MB, (0,), (1,), tenant="a"), Chunk(MB, (1,), (1,), tenant="b")]
        problem = Problem(line(2), custom(2, chunks))

        timeline = simulate(problem, Schedule((Send(0, 0, "g0", "g1"),), 20, 1))

        assert finish_times(problem, timeline) == pytest.approx({"a": 20.0, "b": 0.0})
