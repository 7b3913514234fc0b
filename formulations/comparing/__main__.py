"""``python -m formulations.comparing``: the child process of `formulations.comparing.jobs`."""

import sys

from formulations.comparing.child import serve

serve(sys.stdin.buffer, sys.stdout.buffer)
