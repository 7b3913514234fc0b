"""The designer as a server of its own, and visitors who speak to it as its page does.

For what tries it out (`tests.robust.load`, `faults` and `fuzz_server`). Everything stays on
loopback.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
HERE = "127.0.0.1"

DESIGN = """
import sys
from designer.cli import main
main(["design", "--no-browser", "--port", sys.argv[1]])
"""

Json = dict[str, Any]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as tried:
        tried.bind((HERE, 0))
        return int(tried.getsockname()[1])


class Server:
    """A designer in a process of its own.

    Parameters
    ----------
    port
        Where it listens.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, "-c", DESIGN, str(port)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until it answers.

        Raises
        ------
        RuntimeError
            If it does not within the time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection((HERE, self.port), 1.0):
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server does not listen after {seconds:g} s")

    def memory(self) -> int:
        """Return the bytes that the server itself holds, its solvers not counted."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def solvers(self) -> list[psutil.Process]:
        """Return the processes below it."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self.process.pid).children(recursive=True))
        return []

    def kill(self) -> None:
        """End it with no chance to clean up."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


class Refused(Exception):
    """An answer that is none of those a page can use."""


class Visitor:
    """One browser's worth of a session: its cookies, the callbacks it knows, one connection.

    Parameters
    ----------
    port
        Of the server.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.page = uuid.uuid4().hex
        self.cookies: dict[str, str] = {}
        self._line = http.client.HTTPConnection(HERE, port, timeout=60)
        self._callbacks: list[Json] = []
        self._asked = 0

    def open(self) -> None:
        """Load the page and what it loads first."""
        self.ask("GET", "/")
        self.ask("GET", "/_dash-layout")
        self._callbacks = json.loads(self.ask("GET", "/_dash-dependencies"))

    def close(self) -> None:
        """Close its connection."""
        self._line.close()

    def ask(self, method: str, path: str, body: Json | None = None) -> bytes:
        """Send a request and return the body of the answer.

        Raises
        ------
        Refused
            If its status is none of a success.
        """
        text = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if text else {}
        headers |= {"Origin": f"http://{HERE}:{self.port}"} if text else {}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            self._line.request(method, path, text, headers)
            answer = self._line.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._line.close()
            raise
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        if answer.status not in (200, 204):
            raise Refused(f"{method} {path}: {answer.status} {content[:200]!r}")
        return content

    def call(self, trigger: str, values: Mapping[str, Any], *, writes: str = "") -> Json:
        """Call what a change of one property calls; return what it sets, by component.

        Parameters
        ----------
        trigger
            What has changed, such as ``solve.n_clicks``.
        values
            What is known of the page by ``id.property``; all else is empty.
        writes
            Part of the outputs of the callback that is meant, where several follow the trigger.
        """
        chosen = next(
            each
            for each in self._callbacks
            if not each["clientside_function"]
            and any(_name(row) == trigger for row in each["inputs"])
            and writes in each["output"]
            and bool(writes) is not each["no_output"]
        )
        rows = {
            part: [{**row, "value": values.get(_name(row))} for row in chosen[part]]
            for part in ("inputs", "state")
        }
        body = {
            "output": chosen["output"],
            "outputs": _outputs(chosen["output"]),
            "changedPropIds": [trigger],
            **rows,
        }
        content = self.ask("POST", "/_dash-update-component", body)
        told = json.loads(content) if content else {}
        return {**told.get("response", {}), **told.get("sideUpdate", {})}

    def assessed(self, topology: Json, request: Json) -> Json:
        """Return what is told of a drawing at once."""
        asked = {"problem-request.data": {"topology": topology, "request": request}}
        found: Json = self.call("problem-request.data", asked, writes="assessment")
        return dict(found["assessment"]["data"])

    def followed(self, topology: Json, request: Json) -> Json:
        """Return the best rate, as it follows a drawing."""
        self._asked += 1
        question = {"topology": topology, "request": request, "page": self.page, "n": self._asked}
        found = self.call("live-question.data", {"live-question.data": question})
        return dict(found["optimum"]["data"])

    def solve(self, topology: Json, request: Json) -> str | None:
        """Start a solve; return its key, or None where it is not taken."""
        known = {"solve.n_clicks": 1, "canvas.drawing": {"topology": topology}}
        found = self.call("solve.n_clicks", {**known, "request.data": request}, writes="job.data")
        job = found.get("job", {}).get("data")
        return None if job is None else str(job["key"])

    def beat(self, key: str) -> Json:
        """Ask how a solve stands; return all that changes on the page."""
        return self.call(
            "beat.data",
            {"beat.data": 1, "job.data": {"key": key, "found": 0}},
            writes="progress-line",
        )

    def watch(self, key: str, *, every: float = 0.5, seconds: float = 120.0) -> Json:
        """Ask until a solve is over; return the last answer.

        Raises
        ------
        TimeoutError
            If it is not over in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.beat(key)
            if "job" in found and found["job"]["data"] is None:
                return found
            time.sleep(every)
        raise TimeoutError(f"solve {key} is not over after {seconds:g} s")

    def cancel(self, key: str) -> None:
        """Stop a solve."""
        self.call(
            "cancel.n_clicks",
            {"cancel.n_clicks": 1, "job.data": {"key": key, "found": 0}},
            writes="cancel",
        )


def _name(row: Json) -> str:
    return f"{row['id']}.{row['property']}"


def _outputs(output: str) -> Any:
    """Return the outputs of a callback as a page names them."""
    many = output.startswith("..")
    names = output.strip(".").split("...") if many else [output]
    pairs = [name.rsplit(".", 1) for name in names if "." in name]
    rows = [{"id": pair[0], "property": pair[1]} for pair in pairs]
    return rows if many else (rows[0] if rows else [])


def drawings(chance: random.Random, who: str) -> Iterator[tuple[Json, float]]:
    """Yield rings and stars of a visitor's own, each with the algbw of its all-gather in GB/s.

    On a ring of links of b GB/s each way a GPU takes in 2 b, in a star with links of b it takes in
    b; of the whole buffer it needs all but its own share.
    """
    number = 0
    while True:
        number += 1
        gpus, bandwidth = chance.randrange(3, 9), float(chance.randrange(10, 400))
        ring = chance.random() < 0.5
        names = [f"g{i}" for i in range(gpus)]
        devices: list[Json] = [{"name": each, "kind": "gpu"} for each in names]
        if ring:
            pairs = [(names[i], names[(i + 1) % gpus]) for i in range(gpus)]
        else:
            devices.append({"name": "hub", "kind": "switch"})
            pairs = [(each, "hub") for each in names]
        links = [
            {"src": src, "dst": dst, "bandwidth": bandwidth, "alpha": 0.7}
            for one, other in pairs
            for src, dst in ((one, other), (other, one))
        ]
        topology = {"name": f"{who}, drawing {number}", "devices": devices, "links": links}
        into = 2 * bandwidth if ring else bandwidth
        yield topology, into * gpus / (gpus - 1)
