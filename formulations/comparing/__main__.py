"""``python -m formulations.comparing``: the child process of `formulations.comparing.jobs`."""

from formulations.comparing.child import serve
from formulations.jobs import leave

leave(serve)
