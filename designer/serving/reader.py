"""A process that reads one file for the server: ``python -m designer.serving.reader``.

It is begun for every large file, so it imports what reads and nothing else.
"""

from __future__ import annotations

import pickle
import resource
import sys
from typing import Any

from ccl.errors import CclError
from ccl.formats import catalogue
from ccl.formats.format import Asked, Question


def main() -> None:
    """Read what is asked from the standard input, and write what was found."""
    name, content, topology, settings, memory = pickle.load(sys.stdin.buffer)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    reader = catalogue.recognised(content)
    try:
        if reader is None:
            answer: tuple[Any, ...] = ("unknown",)
        else:
            asked = Asked(name=name, topology=topology, settings=settings)
            answer = ("found", reader.name, reader.read(content, asked))
    except Question as question:
        answer = ("question", str(question), question.key, question.choices)
    except CclError as error:
        answer = ("error", str(error))
    pickle.dump(answer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
