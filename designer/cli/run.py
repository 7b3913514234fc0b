"""``topoloom run``: a plan executed for real, one process of the operating system per rank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ccl import text
from ccl.serialization.quantity import parse_size
from designer.cli.asked import JsonOption
from designer.cli.programs import program_in
from designer.cli.show import print_facts, print_json, remark
from interchange.running import Ran, run

WRONG = 1


def run_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A plan, a result, or the program of a runtime.")
    ],
    ranks: Annotated[
        Literal["processes"], typer.Option("--ranks", help="What each rank is.")
    ] = "processes",
    *,
    transport: Annotated[
        Literal["sockets", "gloo"],
        typer.Option("--transport", help="Sockets of ZeroMQ, or gloo of PyTorch."),
    ] = "sockets",
    dtype: Annotated[
        Literal["int32", "float32"], typer.Option("--dtype", help="Type of the elements.")
    ] = "int32",
    size: Annotated[
        str, typer.Option("--size", metavar="BYTES", help="Of a rank's larger buffer.")
    ] = "1MB",
    in_place: Annotated[
        bool, typer.Option("--in-place", help="With input and output in one buffer.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the values.")] = 0,
    time_limit: Annotated[float, typer.Option("--time-limit", min=1.0, help="Seconds.")] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Run it on this machine and compare every element; exit code 1 if one is wrong."""
    ran = run(
        program_in(file),
        transport=transport,
        dtype=dtype,
        nbytes=parse_size(size),
        in_place=in_place,
        seed=seed,
        time_limit=time_limit,
    )
    if as_json:
        print_json(_told(ran, ranks))
    else:
        _print(ran)
    if not ran.ok:
        raise typer.Exit(WRONG)


def _told(ran: Ran, ranks: str) -> dict[str, object]:
    return {
        "right": ran.ok,
        "program": ran.job.program.name,
        "collective": ran.job.program.collective,
        "ranks": len(ran.job.program.ranks),
        "of": ranks,
        "transport": ran.transport,
        "dtype": ran.job.dtype,
        "in_place": ran.job.in_place,
        "elements_per_chunk": ran.job.elements,
        "compared_with_library": ran.compared,
        "largest_deviation": ran.deviation,
        "seconds": ran.seconds,
        "wrong": ran.sentences(),
    }


def _print(ran: Ran) -> None:
    verdict = "every element is right" if ran.ok else "wrong"
    ranks = text.count(len(ran.job.program.ranks), "process", "processes")
    print_facts(
        f"{ran.job.program.collective} by {ranks} over {ran.transport}: {verdict}",
        [
            ("elements", f"{ran.job.dtype}, {ran.job.elements:,} in a chunk"),
            ("buffers", "in place" if ran.job.in_place else "out of place"),
            ("compared", "with gloo's own as well" if ran.compared else "with the definition"),
            ("deviation", f"{ran.deviation:.2g}" if ran.job.dtype == "float32" else ""),
            ("took", f"{ran.seconds:.3g} s, start of the processes left out"),
        ],
    )
    for each in ran.sentences():
        remark(each)
