"""``python -m formulations.analyses.comparison``: the child process of `comparison.jobs`."""

import signal

from formulations.analyses.comparison.child import serve
from formulations.jobs.child import leave

# A terminal sends Ctrl-C to both; the parent ends this process once it has what is there.
signal.signal(signal.SIGINT, signal.SIG_IGN)
leave(serve)
