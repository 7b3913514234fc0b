"""What stands before the application: who may ask, for what, how much, and what every answer says.

A server on loopback is reached by every page that is open in the user's browser. So a request has
to name this server (`address.Names`), and where a browser says from where it comes, it has to come
from a page of this server. All else is refused in one sentence, before anything reads it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from designer.server.address import Names, without_port

MOST_BODY = 64 * 2**20
"""Bytes of a question: a drawing, what is asked of it, a result and its film, or a file."""

MOST_UPLOAD = 40 * 10**6
"""Bytes of a file; a question carries it in base64, a third longer."""

ASK = "/_dash-update-component"
"""Where callbacks are asked."""

ALIVE = "alive"
"""Where a page asks whether the server is there."""

STORE = "/_store"
"""Where a page stores what its questions refer to."""

LAYOUT = "/_dash-layout"

PAGES = ("/", LAYOUT, "/_dash-dependencies", "/_favicon.ico", f"/{ALIVE}")
ASSETS = "/assets/"
PARTS = "/_dash-component-suites/"

Environ = dict[str, Any]
Start = Callable[..., Any]
Application = Callable[[Environ, Start], Iterable[bytes]]

HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""What every answer says beside its policy of contents."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]|(?:^|/)\.\.(?:/|$)")

log = logging.getLogger(__name__)


def policy(hashes: Iterable[str]) -> str:
    """Return the content security policy: everything from here, nothing from elsewhere.

    Parameters
    ----------
    hashes
        Of the scripts that stand in the page itself, as ``'sha256-…'``.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {' '.join(hashes)}",
            # Components write style elements as they are drawn; what is in them is theirs.
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "media-src blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'none'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


class Refused(Exception):
    """A request that is not answered.

    Parameters
    ----------
    status
        Of HTTP.
    sentence
        Why, for who asked.
    """

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


@dataclass(frozen=True)
class Guard:
    """An application behind its checks.

    Parameters
    ----------
    application
        Which answers what is let through.
    names
        Under which it may be asked for.
    assets
        Paths of its own files below ``/assets/``; there are no others.
    policy
        Of contents.
    """

    application: Application
    names: Names
    assets: frozenset[str]
    policy: str

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer a request."""

        def begin(status: str, headers: list[tuple[str, str]], trouble: Any = None) -> Any:
            own = {name.lower() for name, _ in self._headers}
            kept = [(k, v) for k, v in headers if k.lower() not in own and k.lower() != "server"]
            return start(status, [*kept, *self._headers], trouble)

        try:
            self.check(environ)
            return self.application(environ, begin)
        except Refused as refused:
            status, sentence = refused.status, refused.sentence
        except Exception:
            # Whatever it is, what the visitor gets to see of it is nothing.
            log.exception("a request failed")
            status, sentence = HTTPStatus.INTERNAL_SERVER_ERROR, "This is a bug in Topoloom."
        return _sentence(begin, status, sentence)

    @property
    def _headers(self) -> list[tuple[str, str]]:
        return [*HEADERS, ("Content-Security-Policy", self.policy)]

    def check(self, environ: Environ) -> None:
        """Refuse what is not asked by a page of this server or by its user.

        Raises
        ------
        Refused
            If it is refused.
        """
        host = environ.get("HTTP_HOST", "")
        if not self.names.admits(host):
            sentence = "This server does not go by that name; topoloom design --allow-host adds one"
            raise Refused(HTTPStatus.FORBIDDEN, f"{sentence}.")
        _own(environ, host)
        path, method = environ.get("PATH_INFO", ""), environ.get("REQUEST_METHOD", "")
        if _CONTROL.search(path):
            raise Refused(HTTPStatus.BAD_REQUEST, "This path is no path.")
        if path in (ASK, STORE):
            _asking(environ, method)
            return
        known = path in PAGES or path.startswith(PARTS)
        if not known and not (path.startswith(ASSETS) and path.removeprefix(ASSETS) in self.assets):
            raise Refused(HTTPStatus.NOT_FOUND, "There is nothing here.")
        if method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "This can only be read.")
        if length(environ):
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "A page is asked for without a body."
            )


def _own(environ: Environ, host: str) -> None:
    """Refuse what a browser sends for a page of elsewhere."""
    site, mode = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_SEC_FETCH_MODE")
    method = environ.get("REQUEST_METHOD")
    origin = environ.get("HTTP_ORIGIN")
    opened = mode == "navigate" and method in ("GET", "HEAD")  # a link that somebody follows
    if site not in (None, "same-origin", "none") and not opened:
        raise Refused(HTTPStatus.FORBIDDEN, "Pages of elsewhere may not ask this server.")
    if origin is not None and (
        urlsplit_or_none(origin) not in (("http", host.lower()), ("https", host.lower()))
    ):
        raise Refused(HTTPStatus.FORBIDDEN, "Pages of elsewhere may not ask this server.")


def urlsplit_or_none(origin: str) -> tuple[str, str] | None:
    """Return scheme and host with port of an origin, None where it is none."""
    try:
        found = urlsplit(origin)
    except ValueError:
        return None
    return found.scheme, found.netloc.lower()


def _asking(environ: Environ, method: str) -> None:
    """Refuse what is no question of a page."""
    if method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Questions are posted.")
    # No form of another page can send this without asking first whether it may.
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Questions are application/json.")
    if length(environ) > MOST_BODY:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)


TOO_LARGE = f"This is too large for the server: a question has {MOST_BODY // 2**20} MiB at most."


def length(environ: Environ) -> int:
    """Return how many bytes a request says it has.

    Raises
    ------
    Refused
        If it is no number.
    """
    told = environ.get("CONTENT_LENGTH") or "0"
    if not (told.isascii() and told.isdigit() and len(told) < 20):
        raise Refused(HTTPStatus.BAD_REQUEST, "The length of this request is no number.")
    return int(told)


def secure(environ: Environ, names: Names) -> bool:
    """Whether the browser reached the server by https."""
    name = without_port(environ.get("HTTP_HOST", "").lower())
    return environ.get("wsgi.url_scheme") == "https" or name in names.secure


def _sentence(begin: Start, status: HTTPStatus, sentence: str) -> list[bytes]:
    content = f"{sentence}\n".encode()
    begin(
        f"{status.value} {status.phrase}",
        [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
        ],
    )
    return [content]
