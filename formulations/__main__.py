"""``python -m formulations``: the child process of a solve."""

from formulations.jobs.child_end import leave
from formulations.solving.child import serve

leave(serve)
