"""500 random edits of exported files: refused, found, or proved to change nothing; none passes.

The files are those of plans of all kinds for clusters of the gallery, as a user saves them. An edit
passes if the file is read, no executor's severe rule is broken and executing it finds nothing. The
second opinion (`oracle`), which shares nothing with what it judges, must then prove that the
program still does the same collective.
"""

from __future__ import annotations

import random

import pytest

from ccl.collective import make_collective
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.serialization.documents import document
from formulations import solve
from gallery import open_cluster
from interchange.execution import execute
from interchange.formats.catalogue import writer
from interchange.formats.runtimes.msccl_xml import Options, program_from_xml
from interchange.programs.lint import lint
from tests.interchange.execution.mutations import mutated_xml
from tests.interchange.execution.oracle import verdict

EXPORTS = (
    ("dgx-1v", "all-gather", "list", Options()),
    ("dgx-1v", "all-reduce", "orbit-trees", Options(blocks=7)),
    ("dgx-1v", "broadcast", "list", Options(steps=8)),
    ("ring:gpus=4", "all-to-all", "orbit-lp", Options()),
    ("ring:gpus=5", "reduce-scatter", "list", Options(instances=2)),
    ("star:gpus=4,copies=true,reduces=true", "all-reduce", "list", Options(in_place=False)),
    ("star:gpus=5", "all-to-all", "direct", Options(blocks=5)),
    ("te-ccl-1", "all-gather", "list", Options()),
    ("thesis-2.3", "reduce", "orbit-trees", Options()),
    ("random:gpus=5,switches=1,seed=4", "all-gather", "forestcoll", Options(pieces=6)),
)
EDITS = 500
"""Of all files together."""


def exported(cluster, kind, method, options):
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    plan = solve(problem, method, time_limit=0.3).plan
    made = writer("msccl-xml").write(document(problem, plan=plan), options)
    return next(iter(made.files.values())).decode()


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: f"{export[0]} {export[1]}")
@pytest.mark.cover(2)
def test_no_edit_of_an_exported_file_passes_unless_it_is_proved_right(export):
    """Most edits break something, or else this would try nothing."""
    text, chance = exported(*export), random.Random(repr(export[:3]))
    untouched = program_from_xml(text.encode())
    assert execute(untouched, interleavings=10).ok
    assert verdict(untouched) is None
    stopped = 0
    for _ in range(EDITS // len(EXPORTS)):
        words, mutant = mutated_xml(text, chance)
        try:
            program = program_from_xml(mutant.encode())
        except FormatError:
            stopped += 1
            continue
        refused = any(each.severe for each in lint(program))
        execution, why = execute(program, interleavings=10), verdict(program)
        assert execution.ok == (why is None), (words, why, execution.findings)
        if refused or not execution.ok:
            stopped += 1
        else:
            assert program.collective == untouched.collective, words

    assert stopped > EDITS / len(EXPORTS) / 2
