"""``python -m formulations``: the child process of `formulations.jobs`."""

import sys

from formulations.jobs import serve

serve(sys.stdin.buffer, sys.stdout.buffer)
