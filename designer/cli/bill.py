"""``topoloom bill``: what a cluster costs and draws, and how its cables run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.text import write_bytes
from designer.cli import request as cli

if TYPE_CHECKING:
    from gallery.costs import Bill, Span


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
        cli.print_json(_answer(made))
    else:
        _print(made)
    if out is not None:
        _write(made, out)
    if cables is not None:
        from interchange.formats.machines.netbox import cable_csv  # noqa: PLC0415

        rows = ((e.label, e.first, e.second, e.type, e.length) for e in made.cables)
        write_bytes(cables, cable_csv(rows).encode())
        cli.remark(f"{text.count(len(made.cables), 'cable')} are in {cables}")


def _write(made: Bill, out: Path) -> None:
    from gallery.costs.tables import bill_csv, bill_xlsx  # noqa: PLC0415

    workbook = out.suffix.lower() == ".xlsx"
    write_bytes(out, bill_xlsx(made) if workbook else bill_csv(made).encode())
    cli.remark(f"the bill is in {out}")


def _print(made: Bill) -> None:
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


def _answer(made: Bill) -> dict[str, object]:
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
