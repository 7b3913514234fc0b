"""The folder of a small sweep, written as a sweep writes it."""

from dataclasses import replace

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations import solve
from formulations.campaigns.sweeps.rows import solved_values, unsolved
from formulations.campaigns.sweeps.spec import read_spec
from formulations.campaigns.sweeps.store import keeping
from formulations.campaigns.sweeps.tasks import tasks_of
from tests.ccl.clusters import star

CLUSTERS = {gpus: replace(star(gpus), name=f"star of {gpus}") for gpus in (3, 4)}
"""By their number of GPUs."""

SPEC = read_spec(
    {
        "clusters": list(CLUSTERS.values()),
        "collectives": ["all-gather", "all-to-all"],
        "sizes": ["1KB", "1MB"],
        "formulations": ["list", "ring"],
    }
)
"""Sixteen tasks; ring does not take an all-to-all, so four of them have no plan."""


def write_sweep(folder, *, rows=None):
    """Write the folder of `SPEC` with its first rows, all of them if no number is given."""
    tasks = tasks_of(SPEC)
    with keeping(folder) as keeper:
        keeper.begin(SPEC, [each.key for each in tasks], version="0")
        for task in tasks[:rows]:
            problem = Problem(
                CLUSTERS[task.gpus], make_collective(task.collective, task.gpus, task.size)
            )
            try:
                result = solve(problem, task.formulation)
            except ProblemError as error:
                keeper.add(unsolved(task, str(error), version="0"))
            else:
                keeper.add(unsolved(task, "", version="0") | solved_values(result))
    return folder
