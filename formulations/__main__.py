"""``python -m formulations``: the child process of `formulations.jobs`."""

from formulations.jobs import leave, serve

leave(serve)
