"""``python -m formulations``: the child process of a solve."""

from formulations.jobs.child import leave
from formulations.solving.child import serve

leave(serve)
