"""The session of a browser: whose solve it is.

The session is a random cookie that scripts cannot read and pages of elsewhere cannot send. A job's
key goes to the page with a signature over it and the session; the secret of the signatures is new
with every start of the server. So a key of another session, or of a server before this one, means
nothing, and a page that brings one is told that its job is gone.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from flask import Flask, Response, current_app, g, request

from designer.server.guard import ASK, LAYOUT, STORE, Names, secure, without_port

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
