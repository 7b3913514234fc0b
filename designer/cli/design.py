"""``topoloom design``: the application in a browser."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from ccl.errors import ProblemError
from ccl.formats.own.fragment import fragment_of, is_link, share_of
from designer.cli.asked import open_document
from designer.cli.show import remark


def design(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLUSTER]",
            help="What is open at first: a cluster of the gallery, a document (.json) or a link.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Where the browser finds it.")
    ] = 8050,
    host: Annotated[
        str, typer.Option("--host", help="Address that it listens on; by default only this one's.")
    ] = "127.0.0.1",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
) -> None:
    """Open the designer."""
    fragment = _fragment(cluster or "")
    opened = None if cluster is None or fragment else open_document(cluster)
    _free(host, port)
    from designer.app import serve  # noqa: PLC0415  it loads Dash
    from designer.drawn.files import drawing_of  # noqa: PLC0415

    drawing = None if opened is None else drawing_of(opened.topology, opened.positions)
    remark(f"Topoloom is at http://{host}:{port}/{fragment} and Ctrl-C ends it")
    serve(drawing, host=host, port=port, open_browser=not no_browser, fragment=fragment)


def _fragment(cluster: str) -> str:
    """Return the fragment of a link, which the page reads itself; nothing for all else."""
    if not is_link(cluster):
        return ""
    return f"#t={fragment_of(share_of(cluster))}"


def _free(host: str, port: int) -> None:
    """Refuse an address on which something listens already, before anything is loaded."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        msg = f"{host}:{port} cannot be listened on: {reason}; choose with --port and --host"
        raise ProblemError(msg) from None
