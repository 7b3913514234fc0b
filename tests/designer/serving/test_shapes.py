"""Threads that meet a shape at once do not end the process."""

from __future__ import annotations

import subprocess
import sys

RACE = """
import sys, threading
from contextlib import suppress
from msgspec import ValidationError, convert
from designer.server import questions

questions.settle()
sys.setswitchinterval(1e-6)
together = threading.Barrier(8)

def meet():
    together.wait()
    for each in questions.BY_PLACE.values():
        with suppress(ValidationError):
            convert({"topology": {}, "result": {}, "device": {}}, each)

threads = [threading.Thread(target=meet) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


def test_eight_threads_meet_every_shape_at_once():
    """Without `settle` three processes of ten end with a segmentation fault here."""
    done = subprocess.run(
        [sys.executable, "-c", RACE], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
