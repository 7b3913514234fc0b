"""The application behind its checks: a session for every browser, and JSON that a page can write.

The session is a random cookie that scripts cannot read and pages of elsewhere cannot send. A job's
key goes to the page with a signature over it and the session; the secret of the signatures is new
with every start of the server. So a key of another session, or of a server before this one, means
nothing, and a page that brings one learns that its job is gone.
"""

import hmac
import json
import logging
import math
import re
import secrets
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from itertools import accumulate
from pathlib import Path
from typing import Any

from dash import Dash
from dash.exceptions import DependencyException
from flask import Flask, Response, current_app, g, request
from flask.json.provider import DefaultJSONProvider
from werkzeug.exceptions import BadRequest, HTTPException

from designer.server import guard
from designer.server.questions import check, put, settle
from designer.session import NotStored, Store

_FORM = re.compile(r"[A-Za-z0-9_-]{43}")
"""32 random bytes, as `secrets` writes them."""


def _install(server: Flask, names: guard.Names) -> None:
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
        if g.get("fresh") and request.path in (guard.ASK, guard.LAYOUT):
            answer.set_cookie(
                _cookie(),
                g.visitor,
                httponly=True,
                samesite="Strict",
                secure=guard.secure(request.environ, names),
            )
        if request.path in (guard.ASK, guard.LAYOUT, guard.STORE):
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
    """Return the key of a job that a page names, None if it is not of its session."""
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
    port = host.removeprefix(guard.without_port(host)).lstrip(":")
    return f"topoloom-{port}" if port else "topoloom"


DEEPEST = 60
"""Levels of a question; components within components have some thirty."""

LONGEST_WHOLE = 20
"""Digits of a whole number; browsers write longer ones with an exponent."""

_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS = bytes(each for each in range(256) if each not in _BRACKETS)
_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Provider(DefaultJSONProvider):
    """JSON as the standard has it: numbers that are some, and no deeper than needed."""

    def loads(self, s: str | bytes, **_options: Any) -> Any:
        """Read a body.

        Raises
        ------
        ValueError
            If it is no such JSON.
        """
        content = s.encode() if isinstance(s, str) else s
        if depth(content) > DEEPEST:
            raise ValueError("too deep")
        found = json.loads(
            content, parse_int=_whole, parse_float=_real, parse_constant=_no_constant
        )
        if _HALVES.search(content):  # half a character cannot be written into an answer
            json.dumps(found, ensure_ascii=False).encode()
        return found


def depth(content: bytes) -> int:
    """Return how deep lists and objects lie within one another."""
    deepest = _deepest(content)
    # Brackets within words hardly ever matter, and taking words out takes long.
    return deepest if deepest <= DEEPEST else _deepest(_STRINGS.sub(b"", content))


def _deepest(content: bytes) -> int:
    left = content.translate(None, _OTHERS)
    return max(accumulate(map(_BRACKETS.__getitem__, left)), default=0)


def _whole(text: str) -> int:
    if len(text) > LONGEST_WHOLE:
        raise ValueError("a number that is too long")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number that is too large")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


log = logging.getLogger(__name__)


def protect(app: Dash, names: guard.Names) -> None:
    """Let only pages of the application ask it, and only what they can ask.

    Parameters
    ----------
    app
        With all of its callbacks.
    names
        Under which browsers may ask for it.
    """
    settle()
    server = app.server
    server.config["MAX_CONTENT_LENGTH"] = guard.MOST_BODY
    server.json = Provider(server)
    _install(server, names)
    server.register_error_handler(guard.Refused, _refused)
    server.register_error_handler(DependencyException, _nothing)
    server.register_error_handler(HTTPException, _http)
    server.register_error_handler(Exception, _failed)

    store = Store()

    def ask() -> Response | None:
        if request.path == guard.ASK:
            try:
                check(_body(), app.callback_map, partial(store.resolve, visitor()))
            except NotStored:
                # No error, which browsers write on the console: the page stores it and asks again.
                return Response(status=HTTPStatus.RESET_CONTENT)
        if request.path != guard.STORE:
            return None
        put(_body(), store, visitor(), nbytes=request.content_length or 0)
        return Response(status=HTTPStatus.NO_CONTENT)

    server.before_request(ask)
    server.wsgi_app = guard.Guard(
        server.wsgi_app,
        names=names,
        assets=_files(Path(app.config.assets_folder)),
        policy=guard.policy(app.csp_hashes()),
    )


def _body() -> Any:
    """Return what is posted.

    Raises
    ------
    Refused
        If it is no JSON that a page writes.
    """
    try:
        return request.get_json()  # read once: Dash gets the same object
    except (BadRequest, RecursionError):
        sentence = "This is not JSON as a page of this application writes it."
        raise guard.Refused(HTTPStatus.BAD_REQUEST, sentence) from None


def _files(folder: Path) -> frozenset[str]:
    """Return the files of a folder as they are requested; a link to elsewhere does not count."""
    return frozenset(
        each.relative_to(folder).as_posix()
        for each in folder.rglob("*")
        if each.is_file() and not each.is_symlink()
    )


def _refused(refused: guard.Refused) -> Response:
    return _sentence(refused.status, refused.sentence)


def _nothing(_error: DependencyException) -> Response:
    """Answer who asks for a part of a package that the page does not load."""
    return _sentence(HTTPStatus.NOT_FOUND, "There is nothing here.")


def _http(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    return _sentence(status, f"{status.phrase}.")


def _failed(error: Exception) -> Response:
    """Log a bug in what answers; callbacks have their own way of saying so."""
    log.error("a request failed", exc_info=error)
    return _sentence(HTTPStatus.INTERNAL_SERVER_ERROR, "This is a bug in Topoloom.")


def _sentence(status: HTTPStatus, sentence: str) -> Response:
    return Response(f"{sentence}\n", status, content_type="text/plain; charset=utf-8")
