"""``topoloom catalog``: plans and searches that were kept, and what is the best at each size.

``--catalog``: plans that were solved before, and a place for those that are solved now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from ccl import text
from ccl.collective import COLLECTIVES, CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import document, write_document
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.text import write_text
from designer.cli import request as cli

if TYPE_CHECKING:
    from ccl.topology import Topology
    from formulations.campaigns.catalog import Catalog, Cell, Entry, TunerTable

ATLAS = "all-gather,reduce-scatter,all-reduce,all-to-all,broadcast"
"""Collectives of an atlas unless others are named."""

USUAL = "usual"
"""What stands for the catalog that lies among the user's data."""


def opened(given: str | None) -> Catalog:
    """Open the catalog at a path; none given, or `USUAL`, is the user's own.

    Raises
    ------
    CatalogError
        If it cannot be used.
    """
    from formulations.campaigns.catalog import Catalog  # noqa: PLC0415  it loads a database library

    return Catalog(None if given in (None, USUAL) else Path(given or ""))


@dataclass(frozen=True)
class Store:
    """A catalog beside a solve, or none; where plans are to be solved `fresh`, none is found."""

    catalog: Catalog | None
    fresh: bool = False

    @classmethod
    def of(cls, given: str | None, *, fresh: bool = False) -> Store:
        """Return that of ``--catalog``; errors as `opened`."""
        return cls(None if given is None else opened(given), fresh)

    def find(
        self, problem: Problem, request: Mapping[str, Any], *, time_limit: float | None
    ) -> Result | None:
        """Return a plan to which solving as `asked` could not add, or None."""
        if self.catalog is None or self.fresh:
            return None
        return self.catalog.find(
            problem,
            request["formulation"],
            options=request["options"],
            gap=request["gap"],
            time_limit=time_limit,
            enough=True,
        )

    def keep(self, result: Result, *, time_limit: float | None) -> Result:
        """Keep a result, and return it."""
        if self.catalog is not None:
            self.catalog.keep(result, time_limit=time_limit)
        return result


def tune(
    cluster: str,
    *,
    collective: str | None = None,
    root: int | None = None,
    sizes: str | None = None,
    solve: str | None = None,
    time_limit: float = 5.0,
    csv: Path | None = None,
    catalog: str | None = None,
    as_json: bool = False,
) -> None:
    """Find the best stored plan of each size, as a table that a runtime's tuner can read.

    Parameters
    ----------
    csv : FILE
        Write a line for each range.
    """
    cli.positive("--time-limit", time_limit, unit="s")
    cli.writable(csv)
    topology, store = cli.open_document(cluster).topology, opened(catalog)
    kind = cast(CollectiveKind, collective or cli.USUAL_COLLECTIVE)
    _solve(store, topology, (kind,), names=solve, time_limit=time_limit, root=root or 0)
    asked = make_collective(kind, len(topology.ranks), 1e6, root=root or 0)
    from formulations.campaigns.catalog import tuning  # noqa: PLC0415  --help needs no catalog

    grid = _sizes(sizes) or tuning.SIZES
    table = tuning.tuned(store, topology, asked, sizes=grid)
    if not table.ranges:
        raise ProblemError(
            f"{store.path} has no plan of {kind} on {topology}; solve some with --solve, such as "
            "--solve auto,ring"
        )
    if csv is not None:
        write_text(csv, table.to_csv())
    if as_json:
        cli.print_json(table.to_json())
    else:
        _print_table(table)
    for sentence in table.left_out:
        cli.remark(sentence)
    if csv is not None:
        cli.remark(f"the table is in {csv}")


def atlas(
    cluster: str,
    *,
    collectives: str = ATLAS,
    sizes: str | None = None,
    solve: str | None = None,
    time_limit: float = 5.0,
    svg: Path | None = None,
    catalog: str | None = None,
    as_json: bool = False,
) -> None:
    """Say which method is the best for which collective and size, and what it gains on a ring.

    Parameters
    ----------
    collectives : KIND[,KIND...]
        The rows.
    svg : FILE
        Draw it into a file.
    """
    from formulations.campaigns.catalog import regimes  # noqa: PLC0415  it loads a database library
    from formulations.campaigns.catalog.tuning import ATLAS_SIZES  # noqa: PLC0415

    cli.positive("--time-limit", time_limit, unit="s")
    cli.writable(svg)
    topology, store = cli.open_document(cluster).topology, opened(catalog)
    kinds = _kinds(collectives)
    _solve(store, topology, kinds, names=solve, time_limit=time_limit, root=0)
    found = regimes(store, topology, kinds, sizes=_sizes(sizes) or ATLAS_SIZES)
    if svg is not None:
        from widgets.print.diagrams import atlas_picture  # noqa: PLC0415  only who draws waits
        from widgets.print.painter import svg as painted  # noqa: PLC0415

        write_text(svg, painted(atlas_picture(found)))
        cli.remark(f"the atlas is in {svg}")
    if as_json:
        cli.print_json(found.to_json())
        return
    rows = (
        [kind, *(_told(found.cell(kind, size)) for size in found.sizes)] for kind in found.kinds
    )
    cli.print_table(("", *map(format_size, found.sizes)), rows)


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
        cli.remark(sentence)


def _sizes(given: str | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    return tuple(map(parse_size, filter(None, (each.strip() for each in given.split(",")))))


def _kinds(given: str) -> tuple[CollectiveKind, ...]:
    found = [each.strip() for each in given.split(",") if each.strip()]
    for each in found:
        if each not in COLLECTIVES or each == "custom":
            known = ", ".join(kind for kind in COLLECTIVES if kind != "custom")
            raise ProblemError(f"--collectives names {each!r}; choose from {known}")
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
    cli.print_table(heads, rows)


FAULTY = 1
"""Exit code where a check finds something."""

STORE = """
catalog : FILE
    Which catalog; by default, and as 'usual', your own.
"""

CHOICE = f"""{STORE}
cluster : CLUSTER
    Only of this cluster or one isomorphic to it.
collective : KIND
    Only of this collective.
formulation : NAME
    Only of this formulation.
"""

GRID = f"""{STORE}
sizes : BYTES,BYTES[,...]
    Whole buffers from the first to the last of which the answer goes; by default 1KB
    to 1GB.
solve : NAME[,NAME...]
    First solve with these formulations at a few sizes, and keep what is found.
time_limit : S
    Seconds for each solve.
"""
"""What is said of parameters that several commands have."""


def commands() -> typer.Typer:
    """Return ``list``, ``show``, ``tune`` and the others."""
    app = typer.Typer(
        help="Plans and searches for networks that were kept: list them, find the best plan of "
        "each size, look after the file.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    every: tuple[tuple[Callable[..., None], str], ...] = (
        *((list_, CHOICE), (show, STORE), (tune, GRID), (atlas, GRID)),
        *((forget, CHOICE), (check, STORE), (export, CHOICE), (import_, STORE)),
        *((studies, STORE), (study, STORE)),
    )
    for each, said in every:
        app.command(each.__name__.rstrip("_"))(cli.command(each, said=said))
    return app


def list_(
    *,
    cluster: str | None = None,
    collective: str | None = None,
    formulation: str | None = None,
    catalog: str | None = None,
    as_json: bool = False,
) -> None:
    """List stored plans."""
    store = opened(catalog)
    found = _chosen(store, cluster, kind=collective, formulation=formulation)
    if as_json:
        cli.print_json({"catalog": str(store.path), "plans": [_line(each) for each in found]})
        return
    heads = ("plan", "cluster", "collective", "size", "formulation", "makespan", "gap", "status")
    cli.print_table(heads, ([*_cells(each)] for each in found))
    cli.remark(f"{text.count(len(found), 'plan')} of {store.count()} in {store.path}")


def show(
    plan: int, *, out: Path | None = None, catalog: str | None = None, as_json: bool = False
) -> None:
    """Verify and replay a stored plan, and say what is known of it.

    Parameters
    ----------
    plan
        Its number, as listed.
    out : FILE
        Write it as a document.
    """
    cli.writable(out)
    store = opened(catalog)
    entry = next((each for each in store.entries() if each.number == plan), None)
    result = None if entry is None else store.load(entry)
    if entry is None or result is None:
        raise ProblemError(
            f"{store.path} has no plan {plan} that verifies; topoloom catalog list says which"
        )
    if out is not None:
        write_document(out, document(result))
        cli.remark(f"the result is in {out}")
    if as_json:
        cli.print_json(_line(entry))
        return
    cli.print_facts(
        f"plan {plan}: {entry.kind} of {text.size(entry.size)} on {entry.cluster}",
        [
            ("formulation", entry.formulation),
            ("options", json.dumps(entry.options) if entry.options else ""),
            ("found by", entry.found_by if entry.found_by != entry.formulation else ""),
            ("makespan", f"{result.makespan:.6g} µs"),
            ("bound", f"{result.bound.makespan:.6g} µs ({result.bound.kind})"),
            *cli.whole_chunk_rows(result),
            ("status", result.verdict),
            ("algbw", text.bandwidth(result.algbw)),
            ("stopped", entry.stop.value),
            ("solved in", text.seconds(entry.solve_time)),
            ("by", f"Topoloom {entry.version}, kept on {entry.kept} UTC"),
            ("takes", text.size(entry.nbytes)),
        ],
    )


def forget(
    plans: list[int] | None = None,
    *,
    cluster: str | None = None,
    collective: str | None = None,
    formulation: str | None = None,
    everything: bool = False,
    study: list[int] | None = None,
    catalog: str | None = None,
) -> None:
    """Remove plans: by number, or all of a cluster, collective or formulation.

    Parameters
    ----------
    plans
        Numbers, as listed.
    everything : --all
        Every plan there is.
    study : N
        A search for networks instead, as `topoloom catalog studies` lists it.
    """
    store = opened(catalog)
    if study:
        from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  a database library

        many = Proposals(store).forget(study)
        typer.echo(f"{many} {'study' if many == 1 else 'studies'} forgotten")
        return
    some = any((cluster, collective, formulation))
    if not (plans or some or everything):
        raise ProblemError(
            "nothing is named to forget; give numbers, --cluster, --formulation or --all"
        )
    numbers: list[Entry | int] = list(plans or ())
    if some or everything:
        numbers += _chosen(store, cluster, kind=collective, formulation=formulation)
    typer.echo(f"{text.count(store.forget(numbers), 'plan')} forgotten")


def check(*, catalog: str | None = None) -> None:
    """Check the file and verify every plan in it anew."""
    store = opened(catalog)
    faults = store.faults()
    for sentence in faults:
        cli.remark(sentence)
    typer.echo(f"{text.count(store.count(), 'plan')}, {text.count(len(faults), 'fault')}")
    if faults:
        raise typer.Exit(FAULTY)


def export(
    out: Path,
    *,
    cluster: str | None = None,
    collective: str | None = None,
    formulation: str | None = None,
    catalog: str | None = None,
) -> None:
    """Write plans as JSON lines, to be imported elsewhere.

    Parameters
    ----------
    out : FILE
        JSON lines.
    """
    from formulations.campaigns.catalog import write_lines  # noqa: PLC0415  it loads a database library

    cli.writable(out)
    store = opened(catalog)
    chosen = _chosen(store, cluster, kind=collective, formulation=formulation)
    typer.echo(f"{text.count(write_lines(store, out, chosen), 'plan')} written to {out}")


def import_(lines: Path, *, catalog: str | None = None) -> None:
    """Keep the plans of a file, each verified first.

    Parameters
    ----------
    lines : FILE
        JSON lines.
    """
    from formulations.campaigns.catalog import read_lines  # noqa: PLC0415  it loads a database library

    read = read_lines(opened(catalog), lines)
    for sentence in read.refused:
        cli.remark(sentence)
    typer.echo(f"{text.count(read.stored, 'plan')} kept, {read.known} known already")
    if read.refused:
        raise typer.Exit(FAULTY)


def studies(*, catalog: str | None = None, as_json: bool = False) -> None:
    """List searches for networks (topoloom propose, the Propose view)."""
    from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  a database library

    store = opened(catalog)
    found = Proposals(store).entries()
    if as_json:
        cli.print_json({"catalog": str(store.path), "studies": [asdict(each) for each in found]})
        return
    heads = ("study", "what was wanted", "the best", "networks", "searched", "kept")
    rows = (
        (str(e.number), e.title, e.best, f"{e.networks:,}", text.seconds(e.seconds), e.stored[:16])
        for e in found
    )
    cli.print_table(heads, rows, right=(3,), whole=(0, 1))


def study(
    number: int, *, out: Path | None = None, catalog: str | None = None, as_json: bool = False
) -> None:
    """Show the networks of a search, the best first, and write their drawings.

    Parameters
    ----------
    number
        As `topoloom catalog studies` lists it.
    out : FOLDER
        Write the drawings there.
    """
    from ccl.serialization.topoloom import topology_from_json  # noqa: PLC0415
    from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  a database library
    from widgets.charts.proposals import RESPECTS  # noqa: PLC0415  it loads charts

    store = opened(catalog)
    found = Proposals(store).load(number)
    if found is None:
        raise ProblemError(
            f"{store.path} has no study {number}; topoloom catalog studies says which there are"
        )
    networks = list(found.networks.values())
    if out is not None:
        drawn = [topology_from_json(each["drawing"]["topology"]) for each in networks]
        cli.write_drawings(drawn, out)
    if as_json:
        cli.print_json(
            {"wanted": found.request, "bounds": found.front["bounds"], "networks": networks}
        )
        return
    told = ("mix", "all-to-all", "all-gather", "all-reduce", "latency", "cables", "dollars")
    rows = []
    for place, each in enumerate(networks, start=1):
        values = ((name, each["values"].get(name)) for name in told)
        cells = ("" if value is None else RESPECTS[name].write(value) for name, value in values)
        rows.append((str(place), each["name"], *cells))
    heads = ("", "network", *(RESPECTS[name].title for name in told))
    cli.print_table(heads, rows, right=range(2, len(heads)), whole=(0, 1))


def _chosen(
    store: Catalog, cluster: str | None, *, kind: str | None, formulation: str | None
) -> tuple[Entry, ...]:
    topology = None if cluster is None else cli.open_document(cluster).topology
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
