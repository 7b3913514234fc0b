"""``topoloom catalog``: what is stored; `designer.cli.regimes` tells what is best where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ccl import text
from ccl.errors import ProblemError
from ccl.serialization.documents import document, write_document
from designer.cli import regimes
from designer.cli.asked import JsonOption, open_document, writable
from designer.cli.show import print_facts, print_json, print_table, remark, whole_chunk_rows
from designer.cli.stored import FileOption, opened

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog, Entry

FAULTY = 1
"""Exit code where a check finds something."""

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="CLUSTER", help="Only of this cluster or one isomorphic to it."
    ),
]
MethodOption = Annotated[
    str | None, typer.Option("--formulation", metavar="NAME", help="Only of this formulation.")
]
KindOption = Annotated[
    str | None, typer.Option("--collective", metavar="KIND", help="Only of this collective.")
]


def commands() -> typer.Typer:
    """Return ``list``, ``show``, ``tune`` and the others."""
    app = typer.Typer(
        help="Plans that were kept: list them, find the best of each size, look after the file.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.command("list")(list_)
    for each in (show, regimes.tune, regimes.atlas, forget, check, export):
        app.command()(each)
    app.command("import")(import_)
    return app


def list_(
    *,
    cluster: ClusterOption = None,
    collective: KindOption = None,
    formulation: MethodOption = None,
    catalog: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List stored plans."""
    store = opened(catalog)
    found = _chosen(store, cluster, kind=collective, formulation=formulation)
    if as_json:
        print_json({"catalog": str(store.path), "plans": [_line(each) for each in found]})
        return
    heads = ("plan", "cluster", "collective", "size", "formulation", "makespan", "gap", "status")
    print_table(heads, ([*_cells(each)] for each in found))
    remark(f"{text.count(len(found), 'plan')} of {store.count()} in {store.path}")


def show(
    plan: Annotated[int, typer.Argument(help="Its number, as listed.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it as a document.")
    ] = None,
    catalog: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify and replay a stored plan, and say what is known of it."""
    writable(out)
    store = opened(catalog)
    entry = next((each for each in store.entries() if each.number == plan), None)
    result = None if entry is None else store.load(entry)
    if entry is None or result is None:
        msg = f"{store.path} has no plan {plan} that verifies; topoloom catalog list says which"
        raise ProblemError(msg)
    if out is not None:
        write_document(out, document(result))
        remark(f"the result is in {out}")
    if as_json:
        print_json(_line(entry))
        return
    print_facts(
        f"plan {plan}: {entry.kind} of {text.size(entry.size)} on {entry.cluster}",
        [
            ("formulation", entry.formulation),
            ("options", json.dumps(entry.options) if entry.options else ""),
            ("found by", entry.found_by if entry.found_by != entry.formulation else ""),
            ("makespan", f"{result.makespan:.6g} µs"),
            ("bound", f"{result.bound.makespan:.6g} µs ({result.bound.kind})"),
            *whole_chunk_rows(result),
            ("status", result.verdict),
            ("algbw", text.bandwidth(result.algbw)),
            ("stopped", entry.stop.value),
            ("solved in", text.seconds(entry.solve_time)),
            ("by", f"Topoloom {entry.version}, kept on {entry.kept} UTC"),
            ("takes", text.size(entry.nbytes)),
        ],
    )


def forget(
    plans: Annotated[
        list[int] | None, typer.Argument(help="Numbers, as listed.", show_default=False)
    ] = None,
    *,
    cluster: ClusterOption = None,
    collective: KindOption = None,
    formulation: MethodOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Every plan there is.")] = False,
    catalog: FileOption = None,
) -> None:
    """Remove plans: by number, or all of a cluster, collective or formulation."""
    store = opened(catalog)
    some = any((cluster, collective, formulation))
    if not (plans or some or everything):
        msg = "nothing is named to forget; give numbers, --cluster, --formulation or --all"
        raise ProblemError(msg)
    numbers: list[Entry | int] = list(plans or ())
    if some or everything:
        numbers += _chosen(store, cluster, kind=collective, formulation=formulation)
    typer.echo(f"{text.count(store.forget(numbers), 'plan')} forgotten")


def check(*, catalog: FileOption = None) -> None:
    """Check the file and verify every plan in it anew."""
    store = opened(catalog)
    faults = store.faults()
    for sentence in faults:
        remark(sentence)
    typer.echo(f"{text.count(store.count(), 'plan')}, {text.count(len(faults), 'fault')}")
    if faults:
        raise typer.Exit(FAULTY)


def export(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines.")],
    *,
    cluster: ClusterOption = None,
    collective: KindOption = None,
    formulation: MethodOption = None,
    catalog: FileOption = None,
) -> None:
    """Write plans as JSON lines, to be imported elsewhere."""
    from formulations.campaigns.catalog import write_lines  # noqa: PLC0415  it loads a database library

    writable(out)
    store = opened(catalog)
    chosen = _chosen(store, cluster, kind=collective, formulation=formulation)
    typer.echo(f"{text.count(write_lines(store, out, chosen), 'plan')} written to {out}")


def import_(
    lines: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines.")],
    *,
    catalog: FileOption = None,
) -> None:
    """Keep the plans of a file, each verified first."""
    from formulations.campaigns.catalog import read_lines  # noqa: PLC0415  it loads a database library

    read = read_lines(opened(catalog), lines)
    for sentence in read.refused:
        remark(sentence)
    typer.echo(f"{text.count(read.kept, 'plan')} kept, {read.known} known already")
    if read.refused:
        raise typer.Exit(FAULTY)


def _chosen(
    store: Catalog, cluster: str | None, *, kind: str | None, formulation: str | None
) -> tuple[Entry, ...]:
    topology = None if cluster is None else open_document(cluster).topology
    return store.entries(topology, kind=kind, formulation=formulation)


def _cells(entry: Entry) -> tuple[str, ...]:
    other = entry.found_by and entry.found_by != entry.formulation
    return (
        str(entry.number),
        entry.cluster,
        entry.kind if entry.chunks == 1 else f"{entry.kind}, {entry.chunks} chunks",
        text.size(entry.size),
        f"{entry.formulation} ({entry.found_by})" if other else entry.formulation,
        f"{entry.makespan:.6g} µs",
        text.share(entry.gap),
        entry.verdict,
    )


def _line(entry: Entry) -> dict[str, Any]:
    return {
        "plan": entry.number,
        "cluster": entry.cluster,
        "collective": entry.kind,
        "ranks": entry.ranks,
        "chunks": entry.chunks,
        "whole": entry.whole,
        "root": entry.root,
        "size": entry.size,
        "formulation": entry.formulation,
        "options": dict(entry.options),
        "found_by": entry.found_by or entry.formulation,
        "makespan_us": entry.makespan,
        "bound_us": entry.bound,
        "whole_bound_us": entry.whole_bound,
        "status": entry.verdict,
        "stop": entry.stop.name,
        "solve_s": entry.solve_time,
        "version": entry.version,
        "kept": entry.kept,
        "nbytes": entry.nbytes,
    }
