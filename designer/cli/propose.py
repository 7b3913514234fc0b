"""``topoloom propose``: networks for a number of GPUs and ports, ranked, as drawings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import typer

from ccl import text
from ccl.errors import FormatError, ProblemError
from designer.cli import request as cli
from designer.cli.catalog import opened

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog
    from formulations.proposals import Axis, Candidate, Front, Request


def propose(  # noqa: PLR0913  one for each flag
    *,
    gpus: int,
    ports: int = 4,
    bandwidth: float = 50.0,
    alpha: float = 0.7,
    host: str | None = None,
    radix: int = 0,
    one_way: bool = False,
    mix: Path | None = None,
    budget: str | None = None,
    parts: Path | None = None,
    seconds: float = 25.0,
    keep: int = 8,
    axes: str = "mix,latency",
    seed: int = 0,
    cores: int = 2,
    out: Path | None = None,
    catalog: str | None = None,
    as_json: bool = False,
) -> None:
    """Propose networks for so many GPUs: exact rates, what no network could beat, and why.

    Parameters
    ----------
    gpus
        How many.
    ports
        Network ports of each GPU.
    bandwidth
        GB/s of each port, one way.
    alpha
        Latency of each network link in µs.
    host : --host NAME
        A type of host of the gallery with an inner switch, such as dgx-h100.
    radix
        Ports of each switch; 0 for networks without switches.
    one_way
        Offer links that go one way too, which take split fibres.
    mix : FILE
        YAML: a list of {collective, size, times}; by default all kinds alike.
    budget : DOLLARS
        What switches and cables may cost, such as 2M; the typical price counts.
    parts : FILE
        Your own prices and parts (YAML), as for `topoloom bill`.
    seconds : S
        For the search.
    keep : N
        How many are printed and written.
    axes : AXIS,AXIS
        In which two respects the best are marked, such as mix,switches.
    seed
        Of what is drawn by chance.
    cores : N
        Processes that search at once.
    out : FOLDER
        Write the drawings there, the best first.
    catalog : FILE
        Keep the search in this catalog, where `topoloom catalog study` and the designer open it;
        'usual' names your own.
    """
    from formulations.proposals import USUAL_MIX, Request, read_mix  # noqa: PLC0415  a solver

    wanted: dict[str, Any] = {"gpus": gpus, "ports": ports, "radix": radix, "host": host}
    links: dict[str, Any] = {"bandwidth": bandwidth, "alpha": alpha, "one_way": one_way}
    search: dict[str, Any] = {"seconds": seconds, "seed": seed, "cores": cores}
    judged = USUAL_MIX if mix is None else read_mix(mix)
    request = Request(mix=judged, **wanted, **links, **search)
    both, dollars = _axes(axes), math.inf if budget is None else _dollars(budget)
    cli.positive("--keep", keep, unit="networks")
    if out is not None and out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file; name a folder for the drawings")
    store = None if catalog is None else opened(catalog)
    front, interrupted = _searched(request, parts)
    if store is not None and front.candidates:
        _keep(front, store, axes=both)
    front = _afforded(front, dollars)
    _say(front, front.ranked(keep, *both), both, out=out, as_json=as_json)
    if interrupted:
        raise typer.Exit(cli.INTERRUPTED)


def _keep(front: Front, store: Catalog, *, axes: tuple[Axis, Axis]) -> None:
    from designer.views.propose.worker import described  # noqa: PLC0415  --help needs no page
    from formulations.campaigns.catalog import Proposal, Proposals, View  # noqa: PLC0415

    networks, told = described(front)
    asked = front.request
    request = {**msgspec.to_builtins(asked), "mix": msgspec.to_builtins(asked.mix.uses)}
    study = Proposal(request=request, networks=networks, front=told, view=View(axes))
    Proposals(store).keep(study, viewed=True)
    cli.remark(f"the search is kept in {store.path}")


def _say(
    front: Front,
    kept: Sequence[Candidate],
    axes: tuple[Axis, Axis],
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    if out is not None:
        cli.write_drawings([each.topology for each in kept], out)
    if as_json:
        cli.print_json(_answer(front, kept, *axes))
    else:
        _print(front, kept, *axes)


def _axes(given: str) -> tuple[Axis, Axis]:
    from formulations.proposals import AXES  # noqa: PLC0415  it loads a solver

    found = [each.strip() for each in given.split(",")]
    if len(found) != 2 or not {*found} <= {*AXES} or found[0] == found[1]:
        raise ProblemError(f"--axes is {given}; give two of {', '.join(AXES)}")
    return cast("Axis", found[0]), cast("Axis", found[1])


def _dollars(given: str) -> float:
    """Read an amount such as ``2M``, ``2.5M$`` or ``$800k``."""
    found = re.fullmatch(r"\$?\s*(\d+\.?\d*)\s*([kKM]?)\s*\$?", given.strip().replace(",", ""))
    if found is None or float(found[1]) == 0:
        raise FormatError(f"--budget is {given}; give dollars above 0, such as 2M or 800k")
    return float(found[1]) * {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6}[found[2]]


def _afforded(front: Front, dollars: float) -> Front:
    """Return what a budget allows, all without one.

    Raises
    ------
    ProblemError
        If that is nothing.
    """
    request = front.request
    if not front.candidates:
        ports = text.count(request.ports, "port")
        raise ProblemError(
            f"no network that is known here has {request.gpus:,} GPUs with {ports} each; give "
            "another number of ports, or switches with --radix"
        )
    kept = front if math.isinf(dollars) else front.within(dollars)
    if not kept.candidates:
        sold = [each.along("dollars") for each in front.candidates]
        known = [each for each in sold if each is not None]
        least = f"the cheapest costs ${min(known):,.0f}" if known else "none of them can be bought"
        raise ProblemError(f"no network costs ${dollars:,.0f} or less: {least}")
    return kept


def _searched(request: Request, parts: Path | None) -> tuple[Front, bool]:
    """Return the last front, and whether the user has ended the search."""
    from formulations.proposals import Front, propose  # noqa: PLC0415  it loads a solver
    from gallery.costs import Prices, read_parts  # noqa: PLC0415  other commands do without

    front = Front(request=request, candidates=(), stage="", seconds=0.0)
    leader = ""
    try:
        for front in propose(request, prices=Prices(read_parts(parts))):
            if front.candidates and front.candidates[0].name != leader:
                leader = front.candidates[0].name
                cli.remark(f"{front.seconds:.1f} s: {leader}")
    except KeyboardInterrupt:
        return front, True
    return front, False


def _print(front: Front, kept: Sequence[Candidate], first: Axis, second: Axis) -> None:
    from gallery.costs.bill import NOT_MODELLED  # noqa: PLC0415  other commands do without

    request, kinds = front.request, front.request.kinds
    best = front.pareto(first, second)
    heads = ("", "network", "mix", *(f"{kind} GB/s" for kind in kinds))
    heads += ("latency", "cables on the way", "cables", "switches", "$")
    rows = [
        (
            f"{'*' if each in best else ' '}{place}",
            each.name,
            text.duration(each.time),
            *(text.digits(each.score.rates[kind].algbw) for kind in kinds),
            text.duration(each.score.alpha),
            text.digits(each.score.hops),
            f"{each.score.cables:,}",
            f"{each.score.switches:,}",
            "" if (dollars := each.along("dollars")) is None else f"{dollars:,.0f}",
        )
        for place, each in enumerate(kept, start=1)
    ]
    cli.print_table(heads, rows, right=range(2, len(heads)), whole=(0, 1))
    typer.echo()
    for place, each in enumerate(kept, start=1):
        if each in best:
            typer.echo(f"{place}. {each.name}: {front.why(each)}")
    typer.echo()
    facts = [
        ("$", "of switches and cables, typical; cards are counted with the GPUs"),
        ("not modelled", NOT_MODELLED),
        ("mix", str(request.mix)),
        ("at least", f"{text.duration(front.bound('mix'))} on any network with these ports"),
        ("*", f"no other is better in both {first} and {second}"),
        ("searched", text.seconds(front.seconds)),
    ]
    if front.left_out:
        facts.append(("left out", f"{front.left_out} whose rates would take too long"))
    if front.not_tried:
        facts.append(("not tried", front.not_tried))
    cli.print_facts(f"{request.gpus:,} GPUs, {text.count(request.ports, 'port')} each", facts)


def _answer(front: Front, kept: Sequence[Candidate], first: Axis, second: Axis) -> dict[str, Any]:
    best = front.pareto(first, second)
    return {
        "gpus": front.request.gpus,
        "ports": front.request.ports,
        "mix_bound_us": front.bound("mix"),
        "axes": [first, second],
        "seconds": front.seconds,
        "left_out": front.left_out,
        "not_tried": front.not_tried,
        "networks": [
            {
                "name": each.name,
                "family": each.family,
                "one_way": each.one_way,
                "mix_us": each.time,
                "rates": {
                    kind: {"algbw_GBps": rate.algbw, "at_most_GBps": rate.most}
                    for kind, rate in each.score.rates.items()
                },
                "latency_us": each.score.alpha,
                "hops": each.score.hops,
                "diameter": each.score.diameter,
                "cables": each.score.cables,
                "switches": each.score.switches,
                "network_dollars": each.along("dollars"),
                "network_watts": each.along("watts"),
                "cable_metres": each.along("metres"),
                "best": each in best,
                "why": front.why(each),
            }
            for each in kept
        ],
    }
