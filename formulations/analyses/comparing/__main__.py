"""``python -m formulations.analyses.comparing``: the child process of `comparing.jobs`."""

import signal

from formulations.analyses.comparing.child import serve
from formulations.jobs.solve_job import leave

# A terminal sends Ctrl-C to both; the parent ends this process once it has what is there.
signal.signal(signal.SIGINT, signal.SIG_IGN)
leave(serve)
