"""Child process that does as its task says.

It is started with ``python -m tests.formulations.campaigns.sweeps.acting``.
The name of the formulation is what it does; ``options["file"]`` remembers that it has done it.
"""

import json
import os
import signal
import sys
import time
from base64 import b64encode
from pathlib import Path


def main():
    for line in sys.stdin:
        task = json.loads(line)
        act(task["formulation"], Path(task["options"].get("file", "/nowhere")))


def act(what, file):
    if what != "loads for ever":
        say("begin", fingerprint="f")
    if what.startswith("dies") and not (what == "dies once" and file.exists()):
        if what == "dies once":
            file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what.startswith("finds"):
        say("best", values={"makespan": 2.0, "why_not": "", "result": b64encode(b"2").decode()})
    if "for ever" in what:
        time.sleep(60)
    if what.startswith("eats") or "then eats" in what:
        eaten = []
        while True:
            eaten.append(b"x" * 20_000_000)
            time.sleep(0.01)
    if what == "fails":
        raise RuntimeError("a bug")
    say("row", values={"makespan": 1.0, "why_not": "", "result": b64encode(b"1").decode()})


def say(event, **values):
    sys.stdout.write(json.dumps({"event": event, **values}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
