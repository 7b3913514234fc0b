"""Where the server listens, and the names under which a browser may ask for it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from ccl.errors import ProblemError

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
        msg = f"{host}:{port} cannot be listened on: {reason}; choose with --port and --host"
        raise ProblemError(msg) from None
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
        msg = f"--allow-host {text} is not a name; write one such as gpu-lab.example.org"
        raise ProblemError(msg)
    return _in_url(found.hostname)
