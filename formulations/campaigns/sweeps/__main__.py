"""``python -m formulations.campaigns.sweeps``: the child process of `sweeps.pool`.

Several of them share a machine, so each computes in one thread. Libraries read that when they are
loaded, and this package has loaded some: the process begins again with it in its environment.
"""

import os
import signal
import sys

from formulations.jobs.child import leave

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
    os.environ.update(ONE_THREAD)
    os.execv(sys.executable, [sys.executable, "-m", "formulations.campaigns.sweeps"])

from formulations.campaigns.sweeps.rows import serve  # noqa: E402  once it is certain to stay

# A terminal sends Ctrl-C to all; the parent ends this process.
signal.signal(signal.SIGINT, signal.SIG_IGN)
leave(serve)
