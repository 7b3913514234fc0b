"""Forests in files: all-reduces, groups by their generators, results whose throughput is proved."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import jsonschema
import numpy as np
import pytest

from ccl.bound import Bound
from ccl.errors import FormatError, ScheduleError
from ccl.result import Status, Stop, conclude
from ccl.serialization.documents import (
    SCHEMA_FILE,
    document,
    document_from_json,
    document_text,
    document_to_json,
    parse_document,
)
from ccl.serialization.topoloom import plan_from_json, plan_to_json
from ccl.simulate import simulate
from interchange.formats.own.tables import transfers_csv
from interchange.formats.simulators.chrome_trace import chrome_trace
from tests.ccl.test_forest import ring_sums, sums_at_one, symmetric

SCHEMA = json.loads(SCHEMA_FILE.read_text("utf-8"))


def solved(problem, forest, *bounds):
    return conclude(
        problem,
        forest,
        bounds=bounds,
        stop=Stop.MODEL_OPTIMAL,
        formulation="by-hand",
        options={},
        solve_time=0.0,
    )


@pytest.mark.parametrize(
    "made",
    [
        sums_at_one(4),
        ring_sums(3),
        symmetric("torus:shape=4x4"),
        symmetric("rail-only:hosts=2", reduces=True),
    ],
)
def test_what_is_written_is_read_again(made):
    problem, forest = made
    given = document(problem, plan=forest)

    text = document_text(given)

    assert parse_document(text) == given
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


def test_a_group_is_written_by_its_generators():
    """16 images of each of 16 devices are two rows of 16 numbers."""
    _, forest = symmetric("torus:shape=4x4")

    value = plan_to_json(forest)

    assert np.prod(value["symmetry"]["powers"]) == 16
    assert sum(map(len, value["symmetry"]["generators"])) == 16 * len(value["symmetry"]["powers"])
    assert len(value["trees"]) == 1


def test_a_symmetry_needs_its_topology():
    problem, forest = symmetric("ring:gpus=6")

    assert plan_from_json(plan_to_json(forest), problem.topology) == forest
    with pytest.raises(FormatError, match="means nothing without its topology"):
        plan_from_json(plan_to_json(forest))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"powers": [3, 2]}, "generators and 2 powers"),
        ({"powers": [600]}, "its order is 600, and a group that leaves none of 6 GPUs"),
        ({"generators": [[0, 1, 2]]}, "it is no permutation of the places of 6 devices"),
        ({"generators": [[1, 1, 2, 3, 4, 5]]}, "it is no permutation"),
    ],
)
def test_what_is_no_group_is_refused(change, says):
    problem, forest = symmetric("ring:gpus=6")
    value = plan_to_json(forest)
    value["symmetry"] |= {"generators": [[1, 2, 3, 4, 5, 0]], "powers": [6]} | change

    with pytest.raises(FormatError, match=says):
        plan_from_json(value, problem.topology)


def test_a_result_with_generators_that_are_none_is_refused():
    """A permutation it is, and no automorphism: the plan is verified when it is read."""
    problem, forest = symmetric("ring:gpus=6")
    value = document_to_json(document(solved(problem, forest, Bound(1.0, "flow", None, ""))))
    value["result"]["plan"]["symmetry"] = {"generators": [[1, 0, 3, 2, 5, 4]], "powers": [2]}

    with pytest.raises(ScheduleError, match="which is no link"):
        document_from_json(value)


class TestThroughput:
    """An all-reduce over GPU 0 of a mesh of 4: 80 µs for each, 80.3 the first, in small parts."""

    problem, forest = sums_at_one(4)

    def test_is_a_status_of_its_own(self):
        """The bound on the steady state is met, that on the makespan is not."""
        steady = Bound(80.0, "flow", None, "by hand", steady=True)
        both = solved(self.problem, self.forest, steady, Bound(80.1, "path", None, "by hand"))

        assert both.status is Status.THROUGHPUT
        assert both.stop is Stop.RATE
        assert str(both.status) == "optimal throughput (steady state)"
        assert both.steady_makespan == 80
        assert both.steady_gap == 0
        assert both.gap > 0
        assert document_from_json(document_to_json(document(both))).result == both

    @pytest.mark.parametrize("steady", [False, True])
    def test_needs_a_bound_that_holds_for_it(self, steady):
        below = Bound(79.0, "flow", None, "by hand", steady=steady)
        result = solved(self.problem, self.forest, below)

        assert result.status is Status.FEASIBLE
        assert result.stop is Stop.MODEL_OPTIMAL
        assert (result.steady_gap is None) != steady

    def test_a_makespan_that_meets_its_bound_is_optimal(self):
        exact = simulate(self.problem, self.forest).makespan
        steady = Bound(80.0, "flow", None, "by hand", steady=True)
        result = solved(self.problem, self.forest, steady, Bound(exact, "path", None, ""))

        assert result.status is Status.OPTIMAL
        assert result.stop is Stop.PROVED

    def test_a_bound_above_the_steady_state_is_refused(self):
        """Below the makespan it is: it would say of the steady state that it cannot be."""
        steady = Bound(80.0, "flow", None, "by hand", steady=True)
        value = document_to_json(document(solved(self.problem, self.forest, steady)))
        value["result"]["bounds"][0]["makespan"] = 80.1

        with pytest.raises(FormatError, match=r"no steady state is faster than 80\.1 µs"):
            document_from_json(value)


def test_tables_and_traces_show_the_representatives():
    problem, forest = symmetric("torus:shape=4x4")
    timeline = simulate(problem, forest, chunks=2)

    assert len(transfers_csv(timeline).splitlines()) == 1 + 2 * 15
    trace = json.loads(chrome_trace(problem, timeline))
    assert trace["otherData"]["images"] == 16
    assert sum(each["ph"] == "X" for each in trace["traceEvents"]) == 2 * 15
    halved = replace(forest, trees=(replace(forest.trees[0], weight=Fraction(1, 2)),) * 2)
    assert len(simulate(problem, halved, chunks=2).transfers) == 2 * 15
