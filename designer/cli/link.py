"""``topoloom link``: a cluster and what is asked of it as a link that opens in the designer."""

from __future__ import annotations

from typing import Annotated

import typer

from designer.cli.asked import Cluster, open_document
from designer.cli.show import remark
from interchange.formats.own.fragment import HOME, Share, link_of


def link(
    cluster: Cluster,
    at: Annotated[
        str,
        typer.Option("--at", metavar="ADDRESS", help="Where whoever opens it finds a designer."),
    ] = HOME,
) -> None:
    """Print a link that holds the cluster and what is asked, in its fragment alone."""
    opened = open_document(cluster)
    if opened.plan is not None:
        remark("not kept: the plan; it is solved again")
    typer.echo(link_of(Share.of(opened), at=at))
