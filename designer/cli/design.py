"""``topoloom design``: the application in a browser.

``topoloom worker``: solves what a server sends through a queue.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import formulations
from ccl import text
from ccl.errors import SolverMissing
from designer.cli.browse import USUAL
from designer.cli.browse import opened as opened_catalog
from designer.cli.request import MemoryOption, SolvesOption, memory_in, open_document, remark
from designer.jobs import Limits
from designer.server.address import LOOPBACK, bound, names
from formulations import memory_each
from interchange.formats.own.fragment import fragment_of, is_link, share_of

URL = "redis://127.0.0.1:6379/0"
"""A Redis of this machine, as an example."""


def worker(
    queue: Annotated[
        str,
        typer.Option("--queue", metavar="URL", help=f"The Redis to take solves from, as {URL}."),
    ],
    solves: SolvesOption = None,
    memory: MemoryOption = None,
) -> None:
    """Solve what `topoloom design --queue` sends, until Ctrl-C."""
    installed()
    from designer.queue.broker import connect, place  # noqa: PLC0415  an extra
    from designer.queue.worker import run_worker  # noqa: PLC0415

    many = solves or Limits().solves
    each = memory_in(memory) or memory_each(many)
    connect(queue).close()
    remark(
        f"takes {text.count(many, 'solve')} at once from {place(queue)}, each up to "
        f"{each / 1e9:.3g} GB of memory; Ctrl-C gives them back and ends it"
    )
    run_worker(queue, solves=many, memory=each)


def installed() -> None:
    """Refuse a queue where what it needs is not installed.

    Raises
    ------
    SolverMissing
        If Celery or its client of Redis is not there.
    """
    missing = [name for name in ("celery", "redis") if find_spec(name) is None]
    if missing:
        msg = f"a queue needs {' and '.join(missing)}; install with: pip install topoloom[queue]"
        raise SolverMissing(msg)


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
        ready=_ready,
    )


def _ready(page: str) -> None:
    """Say where the page is, and compile the searches beside it, where nobody has."""
    remark(f"Topoloom is at {page} and Ctrl-C ends it")
    formulations.prepare_searches()


def _fragment(cluster: str) -> str:
    """Return the fragment of a link, which the page reads itself; nothing for all else."""
    if not is_link(cluster):
        return ""
    return f"#t={fragment_of(share_of(cluster))}"
