"""``topoloom design``: the application in a browser.

``topoloom worker``: solves what servers send through a Dask scheduler.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import formulations
from ccl import text
from ccl.errors import ProblemError
from designer.cli import request as cli
from designer.cli.catalog import opened as opened_catalog
from designer.jobs import Limits
from designer.server.guard import LOOPBACK, bound, names
from formulations import memory_each
from interchange.formats.own.fragment import fragment_of, is_link, share_of

ADDRESS = "tcp://127.0.0.1:8786"
"""A scheduler of this machine, as an example."""


def worker(
    *,
    scheduler: str | None = None,
    solves: Annotated[int | None, {"min": 1}] = None,
    memory: str | None = None,
    queue: Annotated[str | None, {"hidden": True}] = None,
) -> None:
    """Solve what `topoloom design --scheduler` sends, until Ctrl-C.

    Parameters
    ----------
    scheduler : ADDRESS
        The Dask scheduler to take solves from, such as tcp://127.0.0.1:8786.
    """
    no_queue(queue)
    if scheduler is None:
        raise ProblemError(
            f"a worker needs --scheduler, such as {ADDRESS}; dask scheduler starts one"
        )
    from formulations.campaigns.remote import MEMORY  # noqa: PLC0415  it loads Dask
    from formulations.campaigns.sweeps.pool import connected  # noqa: PLC0415

    many = solves or Limits().solves
    each = cli.memory_in(memory) or memory_each(many)
    connected(scheduler).close()
    cli.remark(
        f"takes {text.count(many, 'solve')} at once from {scheduler}, each up to "
        f"{each / 1e9:.3g} GB of memory; Ctrl-C gives them back and ends it"
    )
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--no-nanny"]
    command += ["--nthreads", str(many), "--memory-limit", "0", "--no-dashboard"]
    os.execve(sys.executable, command, {**os.environ, MEMORY: str(each)})


def no_queue(queue: str | None) -> None:
    """Say what has come instead of a queue.

    Raises
    ------
    ProblemError
        If one is given.
    """
    if queue is not None:
        raise ProblemError(
            f"--queue is gone: start a Dask scheduler and give --scheduler, such as {ADDRESS}"
        )


def design(  # noqa: PLR0913  one for each flag
    cluster: str | None = None,
    *,
    port: Annotated[int, {"min": 1, "max": 65535}] = 8050,
    host: str = "127.0.0.1",
    allow_host: list[str] | None = None,
    no_browser: bool = False,
    solves: Annotated[int | None, {"min": 1}] = None,
    memory: str | None = None,
    scheduler: str | None = None,
    queue: Annotated[str | None, {"hidden": True}] = None,
    sweep: list[Path] | None = None,
    catalog: str | None = None,
) -> None:
    """Open the designer.

    Parameters
    ----------
    cluster : [CLUSTER]
        What is open at first: a cluster of the gallery, a document (.json) or a link.
    port
        Where the browser finds it.
    host
        Address that it listens on; by default only this one's.
    allow_host : NAME
        A name under which browsers may ask for it as well; https://NAME behind a proxy.
    no_browser
        Do not open a browser.
    scheduler : ADDRESS
        The Dask scheduler whose workers solve (topoloom worker), instead of this machine.
    sweep : DIR
        Folder of a sweep, or one that holds several, whose rows are shown.
    catalog : FILE
        Answer from this catalog what was solved before, keep what is solved, and show what
        it holds; 'usual' is your own. Off by default.
    """
    fragment = _fragment(cluster or "")
    opened = None if cluster is None or fragment else cli.open_document(cluster)
    allowed = allow_host or []
    names(host, port, allowed)
    bound(host, port).close()  # what cannot be listened on is said before anything is loaded
    limits = Limits(at_once=solves, memory=cli.memory_in(memory))
    store = None if catalog is None else opened_catalog(catalog)
    no_queue(queue)
    from designer.app import Offer, serve  # noqa: PLC0415  it loads Dash
    from designer.views.draw.files import drawing_in  # noqa: PLC0415

    drawing = None if opened is None else drawing_in(opened)
    if host not in (*LOOPBACK, "::1"):
        cli.remark("Topoloom listens for other machines too: whoever reaches it may use it")
    serve(
        drawing,
        host=host,
        port=port,
        open_browser=not no_browser,
        fragment=fragment,
        allowed=allowed,
        offer=Offer(limits=limits, scheduler=scheduler, sweeps=sweep or (), catalog=store),
        ready=_ready,
    )


def _ready(page: str) -> None:
    """Say where the page is, and compile the searches beside it, where nobody has."""
    cli.remark(f"Topoloom is at {page} and Ctrl-C ends it")
    formulations.prepare_searches()


def _fragment(cluster: str) -> str:
    """Return the fragment of a link, which the page reads itself; nothing for all else."""
    if not is_link(cluster):
        return ""
    return f"#t={fragment_of(share_of(cluster))}"
