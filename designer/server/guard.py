"""What stands before the application: its address and names, and what a request has to be.

A server on loopback is reached by every page that is open in the user's browser. So a request has
to name this server (`Names`), and where a browser says from where it comes, it has to come from a
page of this server. All else is refused in one sentence, before anything reads it.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from ccl.errors import ProblemError

MOST_BODY = 64 * 2**20
"""Bytes of a question: a drawing, its request, a result and its film, or a file."""

MOST_UPLOAD = 40 * 10**6
"""Bytes of a file; a question carries it in base64, a third longer."""

ASK = "/_dash-update-component"
"""Where callbacks are called."""

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
        Under which it may be requested.
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
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "A page is requested without a body."
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
    """Return scheme and host with port of an origin, None where it is malformed."""
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


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""What a browser calls this machine when it means it."""

EVERYWHERE = ("0.0.0.0", "::", "")
"""Addresses that mean all of a machine; no browser asks for them."""


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not listen yet.

    Raises
    ------
    ProblemError
        If the address is taken or not this machine's.
    """
    made = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        if made is not None:
            made.close()
        reason = (error.strerror or str(error)).lower()
        raise ProblemError(
            f"{host}:{port} cannot be listened on: {reason}; choose with --port and --host"
        ) from None
    return made


@dataclass(frozen=True)
class Names:
    """The names of the server, as browsers write them into ``Host``.

    A page of elsewhere can make its own name mean 127.0.0.1 and so reach a server on loopback from
    within a browser, but its name stays in ``Host``.

    Parameters
    ----------
    exact
        Names with a port that are the server's own; None admits loopback with any port.
    others
        Names that are admitted with any port, since a tunnel or a proxy chooses it.
    secure
        Those of `others` that browsers reach by https.
    """

    exact: frozenset[str] | None = None
    others: frozenset[str] = frozenset()
    secure: frozenset[str] = frozenset()

    def admits(self, host: str) -> bool:
        """Whether a ``Host`` is one of the names."""
        host = host.lower()
        name = without_port(host)
        if self.exact is None and name in LOOPBACK:
            return True
        return name in self.others or host in (self.exact or ())


def names(host: str, port: int, allowed: Iterable[str] = ()) -> Names:
    """Return the names of a server that listens somewhere.

    Parameters
    ----------
    host, port
        Where it listens.
    allowed
        Further names, as the user gives them; ``https://`` before one says that browsers reach it
        so.

    Raises
    ------
    ProblemError
        If one of `allowed` is no name.
    """
    own = LOOPBACK if host in EVERYWHERE else (*LOOPBACK, _in_url(host))
    exact = {f"{each}:{port}".lower() for each in own}
    if port == 80:  # browsers leave it out
        exact |= {each.lower() for each in own}
    given = [(each.startswith("https://"), _name(each)) for each in allowed]
    return Names(
        frozenset(exact),
        frozenset(name for _, name in given),
        frozenset(name for secure, name in given if secure),
    )


def address(host: str, port: int) -> str:
    """Return the address that a browser on this machine asks for."""
    return f"http://{LOOPBACK[0] if host in EVERYWHERE else _in_url(host)}:{port}/"


def without_port(host: str) -> str:
    """Return a ``Host`` without its port; an address in brackets keeps them."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name[-1] == "]") else host


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _name(text: str) -> str:
    """Return a name as ``Host`` has it."""
    found = urlsplit(text if "://" in text else f"http://{text}")
    if not found.hostname or found.path.strip("/") or "@" in text or "*" in text:
        raise ProblemError(
            f"--allow-host {text} is not a name; write one such as gpu-lab.example.org"
        )
    return _in_url(found.hostname)
