"""``python -m formulations.proposals``: a child process of `formulations.proposals.beside`."""

import signal

from formulations.jobs.child import leave
from formulations.proposals.beside import serve

# A terminal sends Ctrl-C to both; the parent ends this process once it has what is there.
signal.signal(signal.SIGINT, signal.SIG_IGN)
leave(serve)
