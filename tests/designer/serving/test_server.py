"""Waitress with bounds: what is slow or wrong is let go, and the end comes soon."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from ccl.errors import ProblemError
from designer.server import server as serving
from designer.server.guard import bound
from designer.server.server import LAST, MOST_HEADER, Server

ANSWER = b"0123456789" * 400_000
"""More than the system takes of an answer that nobody reads."""


def application(environ, start):
    if environ["PATH_INFO"] == "/large":
        start("200 OK", [("Content-Length", str(len(ANSWER)))])
        return [ANSWER]
    content = environ["wsgi.input"].read()
    start("200 OK", [("Content-Length", str(len(content)))])
    return [content]


@pytest.fixture
def running(monkeypatch):
    """A server on a port of its own, which looks for slow ones all the time."""
    monkeypatch.setattr(serving, "PATIENCE", 0.3)
    with bound("127.0.0.1", 0) as on:
        made = Server(application, on)
        made.adj.cleanup_interval = 0
        thread = threading.Thread(target=made.run)
        thread.start()
        yield made
        made.stop()
        thread.join(5)
        assert not thread.is_alive()
        assert made.end()


def said(server, content, *, patience=5.0):
    """Send bytes; return all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", int(server.effective_port)), patience) as line:
        line.sendall(content)
        found = b""
        while more := line.recv(65536):
            found += more
    return found


def test_what_is_whole_is_answered_and_nothing_says_by_whom(running):
    found = said(running, b"POST / HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
    assert found.startswith(b"HTTP/1.0 200 OK")
    assert found.endswith(b"\r\n\r\nhi")
    assert b"Server:" not in found
    assert b"waitress" not in found


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        (b"\x00\r\n\r\n", 400, b"This is not HTTP as it should be."),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, b"This is not HTTP"),
        (b"POST / HTTP/1.1\r\nContent-Length: 67108865\r\n\r\n", 413, b"64 MiB at most."),
        (b"GET / HTTP/1.1\r\nX: ".ljust(MOST_HEADER, b"a"), 431, b"more than 32 KiB."),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501, b"plain or in chunks."),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, b"This is not HTTP"),
    ],
)
def test_what_is_no_request_is_told_so_in_a_sentence(running, content, status, sentence):
    head, _, body = said(running, content).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.")
    assert f" {status} ".encode() in head.splitlines()[0]
    assert sentence in body
    assert body.count(b"\n") == 1
    assert b"waitress" not in head + body


def test_who_sends_a_byte_now_and_then_is_let_go(running):
    """Each byte starts the time of an idle connection anew, but not that of the request."""
    until, gone = time.monotonic() + 60, False
    with socket.create_connection(("127.0.0.1", int(running.effective_port)), 5) as line:
        line.sendall(b"POST / HTTP/1.0\r\nContent-Length: 1000\r\n\r\n")
        line.settimeout(0.05)
        while not gone and time.monotonic() < until:
            try:
                line.sendall(b"x")
                gone = line.recv(10) == b""
            except TimeoutError:
                continue
            except OSError:
                gone = True
    assert gone


def test_who_does_not_read_its_answer_is_let_go(running):
    with socket.create_connection(("127.0.0.1", int(running.effective_port)), 5) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        until = time.monotonic() + 30
        while not running.active_channels and time.monotonic() < until:
            time.sleep(0.01)
        until = time.monotonic() + 30
        while running.active_channels and time.monotonic() < until:
            time.sleep(0.05)
    assert not running.active_channels


def test_an_address_that_is_taken_is_refused_in_a_sentence():
    with bound("127.0.0.1", 0) as on:
        on.listen()
        port = on.getsockname()[1]
        with pytest.raises(
            ProblemError, match=f"127.0.0.1:{port} cannot be listened on: .* --port"
        ):
            bound("127.0.0.1", port)


SERVE = """
import sys, time
from designer.server.guard import bound
from designer.server.server import run

def application(environ, start):
    print("asked", flush=True)
    time.sleep(60)

with bound("127.0.0.1", 0) as on:
    port = on.getsockname()[1]
    idle = run(application, on, ready=lambda: print(port, flush=True))
print("idle" if idle else "busy", flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_though_somebody_still_waits_for_an_answer(ending):
    process = subprocess.Popen([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True)
    with process:
        port = int(process.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert process.stdout.readline() == "asked\n"
            process.send_signal(ending)
            if ending == signal.SIGINT:  # the second ends it at once
                for _ in range(100):  # two that come at once are one
                    time.sleep(0.2)
                    if process.poll() is not None:
                        break
                    process.send_signal(ending)
                assert process.wait(30) == 1
            else:
                assert process.stdout.readline() == "busy\n"
                assert process.wait(30) == 0


LITTER = """
import time
from designer.server.guard import bound
from designer.server.server import run

class Litter:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(60)

def application(environ, start):
    raise AssertionError("nobody asks")

kept = Litter()
with bound("127.0.0.1", 0) as on:
    run(application, on, ready=lambda: print("ready", flush=True))
"""


def test_the_end_does_not_wait_for_a_search_through_all_that_the_process_holds():
    """The interpreter's last search finds a cycle, whose end takes longer than anyone waits."""
    process = subprocess.Popen([sys.executable, "-c", LITTER], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout.readline() == "ready\n"
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


FROZEN = """
import sys
from designer.server.guard import bound
from designer.server.server import run

def application(environ, start):
    print("asked", flush=True)
    return 7 ** 10**9  # nothing else runs in this process until it is there

with bound("127.0.0.1", 0) as on:
    port = on.getsockname()[1]
    run(application, on, ready=lambda: print(port, flush=True))
"""


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.slow
def test_a_signal_ends_the_server_though_a_thread_holds_the_interpreter(signals):
    """No handler of Python's runs then; the second signal ends it at once."""
    process = subprocess.Popen([sys.executable, "-c", FROZEN], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            port = int(process.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), 5) as line:
                line.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert process.stdout.readline() == "asked\n"
                time.sleep(0.2)  # until the power is being computed
                began = time.monotonic()
                process.terminate()
                if signals == 2:
                    time.sleep(0.2)
                    process.terminate()
                assert process.wait(30) == -signal.SIGKILL
                took = time.monotonic() - began
                assert took < LAST if signals == 2 else took > LAST
        finally:
            process.kill()
