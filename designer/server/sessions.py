"""The session of a browser: whose solve it is, and what its pages have drawn and found.

The session is a random cookie that scripts cannot read and pages of elsewhere cannot send. A job's
key goes to the page with a signature over it and the session; the secret of the signatures is new
with every start of the server. So a key of another session, or of a server before this one, means
nothing, and a page that brings one is told that its job is gone.

What is large a page stores once, under a fingerprint of the content, and its questions refer to it.
A reference that means nothing here, since the server has begun anew or had no room, is answered by
410 Gone: the page stores it again and repeats the question (`assets/server.js`).
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from http import HTTPStatus
from typing import Any, TypeVar

from flask import Flask, Response, current_app, g, request

from ccl.result import Result
from ccl.serialization.topoloom import result_from_json, topology_from_json
from ccl.topology import Topology
from designer.server.guard import (
    ASK,
    LAYOUT,
    MOST_BODY,
    STORE,
    Names,
    Refused,
    secure,
    without_port,
)

MOST_STORED = 16
"""Drawings and results of one session: those of its open pages, and of their last steps."""

MOST_BYTES = 2 * MOST_BODY
"""Of JSON that the sessions store together."""

REFERENCES = {"$topology": "topology", "$result": "result"}
"""What a question can refer to, by the only key of the reference."""

T = TypeVar("T")


class Stored(dict[str, Any]):
    """JSON that a page has stored, with all that was made of it."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        super().__init__(value)
        self._lock = threading.Lock()
        self._made: dict[Callable[[Any], Any], Any] = {}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Go to another process as plain JSON."""
        return dict, (dict(self),)

    def made(self, function: Callable[[Any], T]) -> T:
        """Return what a function makes of it, which is called once."""
        with self._lock:
            if function not in self._made:
                self._made[function] = function(self)
            found: T = self._made[function]
            return found


def once(function: Callable[[Any], T], value: Mapping[str, Any]) -> T:
    """Return what a function makes of JSON; of what a page has stored it is made once."""
    return value.made(function) if isinstance(value, Stored) else function(value)


def topology_of(value: Mapping[str, Any]) -> Topology:
    """Read a topology.

    Raises
    ------
    CclError
        If it is none.
    """
    return once(topology_from_json, value)


def result_of(value: Mapping[str, Any]) -> Result:
    """Read a result, whose plan is verified and replayed.

    Raises
    ------
    CclError
        If it is none.
    """
    return once(result_from_json, value)


class Store:
    """What pages have stored, by session and fingerprint; what was used longest ago goes first.

    Parameters
    ----------
    each
        Entries of one session.
    most
        Bytes of all sessions.
    """

    def __init__(self, each: int = MOST_STORED, most: int = MOST_BYTES) -> None:
        self._each, self._most = each, most
        self._entries: OrderedDict[tuple[str, str, str], tuple[Stored, int]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: tuple[str, str, str], value: Mapping[str, Any], nbytes: int) -> Stored:
        """Store a value under its session, kind and fingerprint."""
        stored = Stored(value)
        with self._lock:
            self._entries[key] = stored, nbytes
            own = [each for each in self._entries if each[0] == key[0]]
            for each in own[: -self._each]:
                del self._entries[each]
            while sum(size for _, size in self._entries.values()) > self._most:
                self._entries.popitem(last=False)
        return stored

    def find(self, key: tuple[str, str, str]) -> Stored:
        """Return what is stored under a key.

        Raises
        ------
        Refused
            If nothing is.
        """
        with self._lock:
            if key not in self._entries:
                raise Refused(HTTPStatus.GONE, GONE)
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def resolve(self, value: Any) -> Any:
        """Return a value of a question with what its reference stands for."""
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("topology"), dict):
            return {**value, "topology": self._resolve(value["topology"])}
        return self._resolve(value)

    def _resolve(self, value: dict[str, Any]) -> dict[str, Any]:
        key = next(iter(value)) if len(value) == 1 else ""
        name = value.get(key)
        if key not in REFERENCES or not isinstance(name, str):
            return value
        return self.find((visitor(), REFERENCES[key], name))


GONE = "The server does not have this drawing any more."

_FORM = re.compile(r"[A-Za-z0-9_-]{43}")
"""32 random bytes, as `secrets` writes them."""


def install(server: Flask, names: Names) -> None:
    """Give every browser that asks a session."""
    server.secret_key = secrets.token_bytes(32)

    @server.before_request
    def find() -> None:
        known = request.cookies.get(_cookie(), "")
        g.fresh = not _FORM.fullmatch(known)
        g.visitor = secrets.token_urlsafe(32) if g.fresh else known

    @server.after_request
    def keep(answer: Response) -> Response:
        # A page that is opened from elsewhere comes without its cookie, though the browser has one;
        # what the page asks then comes with it, so a session begins only there.
        if g.get("fresh") and request.path in (ASK, LAYOUT):
            answer.set_cookie(
                _cookie(),
                g.visitor,
                httponly=True,
                samesite="Strict",
                secure=secure(request.environ, names),
            )
        if request.path in (ASK, LAYOUT, STORE):
            answer.headers["Cache-Control"] = "no-store"
        return answer


def visitor() -> str:
    """Return the session that asks."""
    found: str = g.visitor
    return found


def sealed(key: str) -> str:
    """Return the key of a job as the page of its session holds it."""
    return f"{key}.{_signature(key)}"


def key_of(job: Any) -> str | None:
    """Return the key of a job that a page names, None if it is none of its session."""
    given = job.get("key") if isinstance(job, Mapping) else None
    key, _, signature = str(given or "").partition(".")
    return key if hmac.compare_digest(signature.encode(), _signature(key).encode()) else None


def _signature(key: str) -> str:
    secret = current_app.secret_key
    assert isinstance(secret, bytes)
    return hmac.new(secret, f"{visitor()} {key}".encode(), sha256).hexdigest()


def _cookie() -> str:
    """Name the cookie by the port, since browsers keep one jar for all ports of a machine."""
    host = request.host
    port = host.removeprefix(without_port(host)).lstrip(":")
    return f"topoloom-{port}" if port else "topoloom"
