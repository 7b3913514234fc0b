"""``topoloom design``: the application in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from designer.cli.asked import MemoryOption, SolvesOption, memory_in, open_document
from designer.cli.show import remark
from designer.cli.stored import USUAL
from designer.cli.stored import opened as opened_catalog
from designer.cli.worker import installed
from designer.jobs.line import Limits
from designer.server.address import LOOPBACK, bound, names
from interchange.formats.own.fragment import fragment_of, is_link, share_of

ClusterOption = Annotated[
    str | None,
    typer.Argument(
        metavar="[CLUSTER]",
        help="What is open at first: a cluster of the gallery, a document (.json) or a link.",
        show_default=False,
    ),
]
PortOption = Annotated[
    int, typer.Option("--port", min=1, max=65535, help="Where the browser finds it.")
]
HostOption = Annotated[
    str, typer.Option("--host", help="Address that it listens on; by default only this one's.")
]
AllowedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A name under which browsers may ask for it as well; https://NAME behind a proxy.",
        show_default=False,
    ),
]
QueueOption = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="URL",
        help="The Redis through which topoloom worker solves, instead of this machine.",
        show_default=False,
    ),
]
SweepOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--sweep",
        metavar="DIR",
        help="Folder of a sweep, or one that holds several, whose rows are shown.",
        show_default=False,
    ),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="Answer from this catalog what was solved before, keep what is solved, and show what "
        f"it holds; '{USUAL}' is your own. Off by default.",
        show_default=False,
    ),
]


def design(  # noqa: PLR0913  one for each flag
    cluster: ClusterOption = None,
    *,
    port: PortOption = 8050,
    host: HostOption = "127.0.0.1",
    allow_host: AllowedOption = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
    solves: SolvesOption = None,
    memory: MemoryOption = None,
    queue: QueueOption = None,
    sweep: SweepOption = None,
    catalog: CatalogOption = None,
) -> None:
    """Open the designer."""
    fragment = _fragment(cluster or "")
    opened = None if cluster is None or fragment else open_document(cluster)
    allowed = allow_host or []
    names(host, port, allowed)
    bound(host, port).close()  # what cannot be listened on is said before anything is loaded
    limits = Limits(at_once=solves, memory=memory_in(memory))
    store = None if catalog is None else opened_catalog(catalog)
    if queue is not None:
        installed()
    from designer.app import Offer, serve  # noqa: PLC0415  it loads Dash
    from designer.views.draw.files import drawing_of  # noqa: PLC0415

    drawing = None if opened is None else drawing_of(opened.topology, opened.positions)
    if host not in (*LOOPBACK, "::1"):
        remark("Topoloom listens for other machines too: whoever reaches it may use it")
    serve(
        drawing,
        host=host,
        port=port,
        open_browser=not no_browser,
        fragment=fragment,
        allowed=allowed,
        offer=Offer(limits=limits, queue=queue, sweeps=sweep or (), catalog=store),
        ready=lambda page: remark(f"Topoloom is at {page} and Ctrl-C ends it"),
    )


def _fragment(cluster: str) -> str:
    """Return the fragment of a link, which the page reads itself; nothing for all else."""
    if not is_link(cluster):
        return ""
    return f"#t={fragment_of(share_of(cluster))}"
