"""``topoloom gallery`` and ``topoloom bill``: what clusters there are, and what one costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from ccl import text
from ccl.errors import FormatError, ProblemError
from ccl.layout import layout
from ccl.serialization.documents import document, write_document
from ccl.serialization.text import write_bytes
from designer.cli import request as cli
from gallery import Entry, Parameter, catalog, entry, open_cluster

if TYPE_CHECKING:
    from gallery.costs import Bill, Span


def gallery(name: str | None = None, *, out: Path | None = None, as_json: bool = False) -> None:
    """List the clusters, or tell of one: its figures and what each rests on.

    Parameters
    ----------
    name : [NAME]
        A cluster, with arguments: ndv2:hosts=2.
    out : FILE
        Write the cluster as a topology document.
    """
    if name is None:
        if out is not None:
            raise ProblemError(
                f"--out {out} needs the name of a cluster to write, such as ndv2:hosts=2"
            )
        _list(as_json=as_json)
        return
    cli.writable(out)
    topology = open_cluster(name)
    found = entry(name.partition(":")[0])
    if out is not None:
        write_document(out, document(topology, positions=layout(topology)))
    told = {
        "topology": topology.name,
        "gpus": len(topology.ranks),
        "devices": len(topology.devices),
        "links": len(topology.links),
    }
    if as_json:
        cli.print_json(_told(found) | told)
        return
    _print_entry(found, told)
    if out is not None:
        cli.remark(f"the topology is in {out}")


def _list(*, as_json: bool) -> None:
    if as_json:
        cli.print_json({"clusters": [_told(each) for each in catalog()]})
        return
    rows = [
        (each.name, each.title, " ".join(_default(row) for row in each.parameters), each.source)
        for each in catalog()
    ]
    cli.print_table(("name", "cluster", "takes", "source"), rows)


def _told(found: Entry) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.title,
        "family": found.family,
        "summary": found.summary,
        "source": found.source,
        "parameters": [
            {
                "name": each.name,
                "kind": each.kind,
                "default": list(each.default) if isinstance(each.default, tuple) else each.default,
                "choices": list(each.choices),
                "meaning": each.meaning,
            }
            for each in found.parameters
        ],
        "figures": [
            {"what": each.what, "value": each.value, "standing": each.standing}
            for each in found.figures
        ],
    }


def _print_entry(found: Entry, told: dict[str, Any]) -> None:
    counts = (
        f"{text.count(told['gpus'], 'GPU')}, {text.count(told['devices'], 'device')}, "
        f"{text.count(told['links'], 'one-way link')}"
    )
    cli.print_facts(
        told["topology"],
        [
            ("what", found.summary),
            ("has", counts),
            ("source", found.source),
            *(("takes", _takes(each)) for each in found.parameters),
        ],
    )
    cli.print_table(
        ("figure", "value", "standing"),
        [(each.what, each.value, each.standing) for each in found.figures],
    )


def _takes(parameter: Parameter) -> str:
    choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
    return f"{_default(parameter)}: {parameter.meaning}{choices}"


def _default(parameter: Parameter) -> str:
    """Write an argument with its default as it is typed."""
    value = parameter.default
    if isinstance(value, tuple):
        value = "x".join(map(str, value))
    return f"{parameter.name}={str(value).lower() if isinstance(value, bool) else value}"


def bill(
    cluster: str,
    *,
    parts: Path | None = None,
    out: Path | None = None,
    cables: Path | None = None,
    place_for: Literal["metres", "dollars"] = "metres",
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Print the bill of parts of a cluster: dollars, watts, racks and cables.

    Parameters
    ----------
    parts : FILE
        Your own prices and parts (YAML), which override those that come along.
    out : FILE
        Where the bill is written: bill.csv, or bill.xlsx with all cables.
    cables : FILE
        Where the cables are written, as CSV that NetBox imports.
    place_for
        Whether boxes are put into racks for few metres or few dollars of cables.
    seed
        Of the search for places.
    """
    for file in (out, cables):
        cli.writable(file)
    if out is not None and out.suffix.lower() not in (".csv", ".xlsx"):
        raise FormatError(f"--out {out} is neither CSV nor XLSX; name it bill.csv or bill.xlsx")
    from gallery.costs import Floor, bill_of, read_parts  # noqa: PLC0415  other commands do without

    topology = cli.open_document(cluster).topology
    made = bill_of(topology, read_parts(parts), Floor(objective=place_for, seed=seed))
    if as_json:
        cli.print_json(_bill_answer(made))
    else:
        _print_bill(made)
    if out is not None:
        _write_bill(made, out)
    if cables is not None:
        from interchange.formats.machines.netbox import cable_csv  # noqa: PLC0415

        rows = ((e.label, e.first, e.second, e.type, e.length) for e in made.cables)
        write_bytes(cables, cable_csv(rows).encode())
        cli.remark(f"{text.count(len(made.cables), 'cable')} are in {cables}")


def _write_bill(made: Bill, out: Path) -> None:
    from gallery.costs.tables import bill_csv, bill_xlsx  # noqa: PLC0415

    workbook = out.suffix.lower() == ".xlsx"
    write_bytes(out, bill_xlsx(made) if workbook else bill_csv(made).encode())
    cli.remark(f"the bill is in {out}")


def _print_bill(made: Bill) -> None:
    cables = ", ".join(f"{count:,} {kind}" for kind, count in made.classes.items())
    longest = max((each.length for each in made.cables), default=0.0)
    cli.print_facts(
        made.topology.name,
        [
            ("everything", f"{_money(made.dollars)}, {_power(made.watts)}"),
            ("network", f"{_money(made.network_dollars)}, {_power(made.network_watts)}"),
            ("racks", f"{len(set(made.racks.values())):,}"),
            ("cables", cables and f"{cables}; {made.metres:,.0f} m, the longest {longest:.1f} m"),
        ],
    )
    cli.print_table(
        ("part", "count", "$ of one", "W of one", "$ of all", "as of"),
        [
            (
                each.title,
                f"{each.count:,.0f}{' m' if each.unit == 'm' else ''}",
                _span(each.dollars),
                _span(each.watts),
                f"{each.dollars.typical * each.count:,.0f}",
                each.date,
            )
            for each in made.rows
        ],
        right=(1, 4),
        whole=(0, 1, 2, 3, 4, 5),
    )
    typer.echo("")
    for each in made.rows:
        typer.echo(f"{each.part}: {each.source}")
    for sentence in (*made.assumed, made.left_out):
        cli.remark(text.sentence(sentence))


def _span(span: Span) -> str:
    if span.high == 0:
        return text.NONE
    low, typical, high = (f"{each:,.9g}" for each in (span.low, span.typical, span.high))
    return typical if low == high else f"{typical} ({low} to {high})"


def _money(span: Span) -> str:
    low, typical, high = (
        f"${text.scale_unit(each, ('', 'thousand', 'M', 'billion'))}".rstrip()
        for each in (span.low, span.typical, span.high)
    )
    return f"{typical} ({low} to {high})"


def _power(span: Span) -> str:
    low, typical, high = (
        text.scale_unit(each, ("W", "kW", "MW")) for each in (span.low, span.typical, span.high)
    )
    return f"{typical} ({low} to {high})"


def _bill_answer(made: Bill) -> dict[str, object]:
    def three(span: Span) -> list[float]:
        return [span.low, span.typical, span.high]

    return {
        "topology": made.topology.name,
        "dollars": three(made.dollars),
        "watts": three(made.watts),
        "network_dollars": three(made.network_dollars),
        "network_watts": three(made.network_watts),
        "racks": len(set(made.racks.values())),
        "metres": made.metres,
        "cables": made.classes,
        "rows": [
            {
                "part": each.part,
                "count": each.count,
                "unit": each.unit,
                "dollars": three(each.dollars),
                "watts": three(each.watts),
                "source": each.source,
                "date": each.date,
            }
            for each in made.rows
        ],
        "assumed": list(made.assumed),
        "not_modelled": made.left_out,
    }
