"""Every cluster of the gallery, every collective that it can do: solved, exported, executed."""

import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations import formulation, solve
from gallery import catalog, open_cluster
from interchange.execution import execute
from interchange.formats.runtimes.msccl_xml import program_from_xml, program_to_xml
from interchange.programs.lint import lint
from interchange.programs.lowering import lower

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
ONE_WAY = ("te-ccl-2a", "te-ccl-2b", "te-ccl-2c")
"""Clusters whose GPUs do not all reach one another: no collective among all of them exists."""
LARGE = ("gb200-nvl72", "tpu-v4")


def cases():
    for entry in catalog():
        for kind in KINDS:
            marks = [pytest.mark.slow] if entry.name in LARGE else []
            yield pytest.param(entry, kind, id=f"{entry.name}-{kind}", marks=marks)


def methods(problem):
    """Return what takes a problem; sums that go through a memory are a matter of trees."""
    return [name for name in ("auto", "orbit-trees") if formulation(name).why_not(problem) is None]


@pytest.mark.parametrize(("entry", "kind"), list(cases()))
@pytest.mark.cover(8)
def test_an_exported_plan_is_clean_and_right_in_100_interleavings(entry, kind):
    """The file is read again, so what is executed is what a runtime would load."""
    topology = entry.make()
    if entry.name in ONE_WAY:
        with pytest.raises(ProblemError, match="cannot be reached"):
            Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
        return
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    if not methods(problem):
        return  # no paths join its contributions, which is refused in words elsewhere
    program = lower(problem, solve(problem, methods(problem)[0], time_limit=0.5).plan)
    if any(each.sentence.endswith("use fewer chunks or pieces") for each in lint(program)):
        program = lower(problem, solve(problem, "pieces", options={"pieces": 2}, time_limit=2).plan)
    loaded = program_from_xml(program_to_xml(program).encode())

    assert loaded == program
    assert [each.sentence for each in lint(loaded) if each.severe] == []
    each = 50 if loaded.in_place else 100  # in place and out of place
    assert execute(loaded, interleavings=each).check().interleavings == 100


@pytest.mark.parametrize(
    ("cluster", "method", "options"),
    [
        ("dgx-h100:copies=true,reduces=true", "pieces", {"pieces": 4}),
        ("dgx-h100:hosts=2,copies=true,reduces=true", "pieces", {"pieces": 2}),
        ("dgx-h100:copies=true,reduces=true", "one-shot", {}),
        ("torus", "swing", {}),
    ],
)
def test_sums_and_copies_in_switches_are_programs_of_gpus(cluster, method, options):
    """A runtime has no switch to ask: what is added or copied there is sent GPU by GPU."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective("all-reduce", len(topology.ranks), 1e6))
    program = lower(problem, solve(problem, method, options=options, time_limit=5).plan)
    loaded = program_from_xml(program_to_xml(program).encode())
    assert [each.sentence for each in lint(loaded) if each.severe] == []
    assert loaded.in_place
    # In place and out of place.
    assert execute(loaded, interleavings=10).check().interleavings == 20
