"""``python -m formulations``: the child process of `formulations.jobs.solve_job`."""

from formulations.jobs.solve_job import leave, serve

leave(serve)
