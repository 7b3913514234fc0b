"""``topoloom catalog tune`` and ``atlas``: the best stored plan and method of each size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ccl import text
from ccl.collective import COLLECTIVES, CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.text import write_text
from designer.cli.asked import (
    USUAL_COLLECTIVE,
    Cluster,
    CollectiveOption,
    JsonOption,
    RootOption,
    open_document,
    positive,
    writable,
)
from designer.cli.show import print_json, print_table, remark
from designer.cli.stored import FileOption, opened

if TYPE_CHECKING:
    from ccl.topology import Topology
    from formulations.campaigns.catalog import Catalog, Cell, TunerTable

ATLAS = "all-gather,reduce-scatter,all-reduce,all-to-all,broadcast"
"""Collectives of an atlas unless others are named."""

SolveOption = Annotated[
    str | None,
    typer.Option(
        "--solve",
        metavar="NAME[,NAME...]",
        help="First solve with these formulations at a few sizes, and keep what is found.",
        show_default=False,
    ),
]
SizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="BYTES,BYTES[,...]",
        help="Whole buffers from the first to the last of which the answer goes; by default "
        "1KB to 1GB.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    float, typer.Option("--time-limit", metavar="S", help="Seconds for each solve.")
]


def tune(
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    root: RootOption = None,
    sizes: SizesOption = None,
    solve: SolveOption = None,
    time_limit: LimitOption = 5.0,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write a line for each range.")
    ] = None,
    catalog: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the best stored plan of each size, as a table that a runtime's tuner can read."""
    positive("--time-limit", time_limit, unit="s")
    writable(csv)
    topology, store = open_document(cluster).topology, opened(catalog)
    kind = cast(CollectiveKind, collective or USUAL_COLLECTIVE)
    _solve(store, topology, (kind,), names=solve, time_limit=time_limit, root=root or 0)
    asked = make_collective(kind, len(topology.ranks), 1e6, root=root or 0)
    from formulations.campaigns.catalog import tuning  # noqa: PLC0415  --help needs no catalog

    grid = _sizes(sizes) or tuning.SIZES
    table = tuning.tuned(store, topology, asked, sizes=grid)
    if not table.ranges:
        msg = (
            f"{store.path} has no plan of {kind} on {topology}; solve some with --solve, such as "
            "--solve auto,ring"
        )
        raise ProblemError(msg)
    if csv is not None:
        write_text(csv, table.to_csv())
    if as_json:
        print_json(table.to_json())
    else:
        _print_table(table)
    for sentence in table.left_out:
        remark(sentence)
    if csv is not None:
        remark(f"the table is in {csv}")


def atlas(
    cluster: Cluster,
    *,
    collectives: Annotated[
        str, typer.Option("--collectives", metavar="KIND[,KIND...]", help="The rows.")
    ] = ATLAS,
    sizes: SizesOption = None,
    solve: SolveOption = None,
    time_limit: LimitOption = 5.0,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw it into a file.")
    ] = None,
    catalog: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which method is the best for which collective and size, and what it gains on a ring."""
    from formulations.campaigns.catalog import regimes  # noqa: PLC0415  it loads a database library
    from formulations.campaigns.catalog.tuning import ATLAS_SIZES  # noqa: PLC0415

    positive("--time-limit", time_limit, unit="s")
    writable(svg)
    topology, store = open_document(cluster).topology, opened(catalog)
    kinds = _kinds(collectives)
    _solve(store, topology, kinds, names=solve, time_limit=time_limit, root=0)
    found = regimes(store, topology, kinds, sizes=_sizes(sizes) or ATLAS_SIZES)
    if svg is not None:
        from widgets.pictures.atlas import atlas_picture  # noqa: PLC0415  only who draws waits
        from widgets.pictures.svg import svg as painted  # noqa: PLC0415

        write_text(svg, painted(atlas_picture(found)))
        remark(f"the atlas is in {svg}")
    if as_json:
        print_json(found.to_json())
        return
    rows = (
        [kind, *(_told(found.cell(kind, size)) for size in found.sizes)] for kind in found.kinds
    )
    print_table(("", *map(format_size, found.sizes)), rows)


def _solve(
    store: Catalog,
    topology: Topology,
    kinds: tuple[CollectiveKind, ...],
    *,
    names: str | None,
    time_limit: float,
    root: int,
) -> None:
    """Solve with several methods at a few sizes what the catalog cannot answer."""
    from formulations.campaigns.catalog.answering import fill  # noqa: PLC0415  it loads a database library

    if names is None:
        return
    listed = [each.strip() for each in names.split(",") if each.strip()]
    told = fill(store, topology, kinds, methods=listed, time_limit=time_limit, root=root)
    for sentence in told:
        remark(sentence)


def _sizes(given: str | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    return tuple(map(parse_size, filter(None, (each.strip() for each in given.split(",")))))


def _kinds(given: str) -> tuple[CollectiveKind, ...]:
    found = [each.strip() for each in given.split(",") if each.strip()]
    for each in found:
        if each not in COLLECTIVES or each == "custom":
            known = ", ".join(kind for kind in COLLECTIVES if kind != "custom")
            msg = f"--collectives names {each!r}; choose from {known}"
            raise ProblemError(msg)
    return cast(tuple[CollectiveKind, ...], tuple(found))


def _told(cell: Cell) -> str:
    if cell.method is None:
        return text.NONE
    return cell.method if cell.gain is None else f"{cell.method} {cell.gain:.3g}×"


def _print_table(table: TunerTable) -> None:
    heads = ("from", "to", "plan", "algorithm", "makespan", "algbw", "above the bound")
    rows = [
        (
            format_size(each.begin),
            format_size(each.end),
            str(each.entry.number),
            each.algorithm,
            " to ".join(text.duration(time) for time in each.makespans),
            " to ".join(text.bandwidth(rate) for rate in each.algbws),
            " to ".join(
                text.share(time / least - 1)
                for time, least in zip(each.makespans, each.bounds, strict=True)
            ),
        )
        for each in table.ranges
    ]
    typer.echo(f"{table.kind} on {table.topology}")
    print_table(heads, rows)
