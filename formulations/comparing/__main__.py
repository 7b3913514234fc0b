"""``python -m formulations.comparing``: the child process of `formulations.comparing.jobs`."""

import signal

from formulations.comparing.child import serve
from formulations.jobs import leave

# A terminal sends Ctrl-C to both; the parent ends this process once it has what is there.
signal.signal(signal.SIGINT, signal.SIG_IGN)
leave(serve)
