"""Large files are read by a process of their own, which may take so much time and memory.

Small ones are read here: the readers are bounded, and `tools/fuzz.py` tries them with files of
this size.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from ccl.errors import FormatError
from ccl.formats import catalogue
from ccl.formats.format import Question
from ccl.topology import Topology
from designer.drawn import importing
from designer.drawn.importing import Found
from designer.serving.guard import MOST_UPLOAD
from formulations.walls import SAID

SMALL = 800_000
"""Bytes of a file that is read without ado."""

AT_ONCE = 2
"""Large files that are read at once; the others wait."""

SECONDS = 60.0
"""That a large file may take."""

MEMORY = 2 * 2**30
"""Bytes that reading one may take."""


class Apart:
    """Reads files so that none takes the server with it."""

    def __init__(self) -> None:
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def read(
        self,
        name: str,
        content: bytes,
        *,
        topology: Topology | None,
        settings: Mapping[str, str],
    ) -> Found:
        """Read a file of any format, as `importing.read` does.

        Raises
        ------
        Question
            If only the user knows what is right.
        CclError
            If it is of no format that is known, wrong, or takes too long or too much.
        """
        if len(content) > MOST_UPLOAD:
            has, most = f"{len(content) / 1e6:,.0f}", MOST_UPLOAD // 10**6
            msg = f"{name} has {has} MB; at most {most} MB are read here"
            raise FormatError(msg)
        if len(content) <= SMALL:
            return importing.read(name, content, topology=topology, settings=settings)
        asked = pickle.dumps((name, content, topology, dict(settings), MEMORY))
        with self._room:
            answer = _answer(name, asked)
        match answer:
            case ("found", reader, imported):
                return Found(catalogue.reader(str(reader)), imported)
            case ("question", message, key, choices):
                raise Question(message, key=key, choices=choices)
            case ("error", message):
                raise FormatError(message)
        raise importing.unknown(name)


def _answer(name: str, asked: bytes) -> tuple[Any, ...]:
    """Let a process read a file, and end it where it takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "designer.serving.reader"],
            input=asked,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"{name} takes more than {SECONDS:g} s to be read; open a smaller part of it"
        raise FormatError(msg) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace")
        if done.returncode < 0 or any(word in said for word in SAID):
            msg = f"{name} takes more than {MEMORY // 2**30} GiB to be read; open a smaller part"
            raise FormatError(msg)
        msg = f"reading {name} ended with {said[-500:]}"
        raise RuntimeError(msg)
    found: tuple[Any, ...] = pickle.loads(done.stdout)  # of our own process
    return found
