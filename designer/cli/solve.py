"""``topoloom solve``: one solve in a child process, watched, and its best plan kept.

``--chunks 1,2,4,8``: several numbers of chunks per shard, and which of them are worth it.
``--front`` and ``--at-most-sends``: plans with fewer sends that the same solve has found.
"""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import formulations
from ccl import text
from ccl.errors import ProblemError, SolveError
from ccl.plans import Schedule
from ccl.result import Result, Stop
from ccl.serialization.documents import document, write_document
from designer.cli import request as cli
from designer.cli.catalog import Store
from formulations import Formulation, OptionField, pareto, sends_front
from formulations.analyses.chunk_counts import chunks_per_shard, common_bound, common_gap, tried

if TYPE_CHECKING:
    from ccl.problem import Problem
    from ccl.serialization.documents import Document
    from formulations import SolveJob
    from formulations.analyses.comparison import ComparisonJob


def read_counts(given: str | None) -> tuple[int | None, ...]:
    """Return the numbers that are given, or one None for the default.

    Raises
    ------
    ProblemError
        If one is not a whole number.
    """
    if given is None:
        return (None,)
    try:
        return tuple(int(each) for each in given.split(","))
    except ValueError:
        raise ProblemError(
            f"--chunks is {given!r}; give whole numbers joined by commas, such as 1,2,4"
        ) from None


def front_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return what ``--json`` prints of the results that fewer chunks do not beat."""
    return [
        {
            "chunks": chunks_per_shard(each),
            "makespan_us": each.makespan,
            "gap": common_gap(each, results),
            "found_by": each.found_by or each.formulation,
            "solve_s": each.solve_time,
        }
        for each in pareto(results)
    ]


def print_front(results: Sequence[Result]) -> None:
    """Print makespan against chunks, with the gap to what holds for any number of them."""
    bound = common_bound(results)
    cli.print_table(
        ("chunks", "makespan", "above the bound for any number", "found by", "solved in"),
        (
            (
                f"{row['chunks']}",
                f"{row['makespan_us']:.6g} µs",
                text.share(row["gap"]),
                row["found_by"],
                text.seconds(row["solve_s"]),
            )
            for row in front_rows(results)
        ),
    )
    tried = ", ".join(str(chunks_per_shard(each)) for each in results)
    typer.echo(f"tried {tried}; no number of chunks is below {bound.makespan:.6g} µs\n")


_FLAG = "--formulation"


def command(chosen: Formulation | None) -> Callable[..., None]:
    """Return the command with a flag for every option of a formulation.

    A flag that is not given is None, so that the formulation's own default holds.
    """
    flags = [
        inspect.Parameter(
            row.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(row)
        )
        for row in (() if chosen is None else formulations.option_fields(chosen.options))
    ]
    return cli.command(solve, flags)


def formulation_in(arguments: Sequence[str]) -> Formulation | None:
    """Return the formulation that a command line names, None where nothing is to be solved.

    Raises
    ------
    ProblemError
        If there is none of this name.
    """
    if arguments[:1] != ["solve"]:
        return None
    name = formulations.DEFAULT
    for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == _FLAG and value:
            name = value
        elif flag.startswith(f"{_FLAG}="):
            name = flag.partition("=")[2]
    return formulations.formulation(name)


def unknown_option(flag: str, chosen: Formulation) -> str:
    """Say what the options of a formulation are."""
    flags = [_flag(row).partition("/")[0] for row in formulations.option_fields(chosen.options)]
    own = f"its own options are {', '.join(flags)}" if flags else "it has no options of its own"
    return f"solve with {chosen.name} has no option {flag}; {own}; see topoloom solve --help"


def solve(  # noqa: PLR0913  one for each flag
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    chunks: str | None = None,
    root: int | None = None,
    window: list[str] | None = None,
    tenants: Path | None = None,
    formulation: str = formulations.DEFAULT,
    time_limit: float | None = None,
    gap: float | None = None,
    solver: str = "HIGHS",
    memory: str | None = None,
    catalog: str | None = None,
    front: bool = False,
    at_most_sends: int | None = None,
    out: Path | None = None,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Find a schedule, verify it and say how good it is.

    Parameters
    ----------
    chunks : N[,N...]
        Keep so many chunks per shard whole; by default plans cut as they like. Of several
        numbers the best is kept, and those are shown that fewer chunks do not beat; a time
        limit is for all of them.
    window : WHEN
        Links with less bandwidth for a time, such as 'g0->g1@0..50us=0.5'; again for more.
    tenants : FILE
        Several jobs at once, with priorities, as YAML (docs/whatif.md).
    formulation : NAME
        How the schedule is found.
    time_limit : S
        Seconds; the best plan so far is kept.
    gap : SHARE
        Stop this near the bound: 0.05 is 5 %.
    solver : NAME
        A solver that CVXPY knows.
    catalog : FILE
        Answer from this catalog what solving again could not better, and keep what is
        solved; 'usual' is your own. By default nothing is looked up or kept.
    front
        Show the plans with fewer sends that were found, which take longer.
    at_most_sends : N
        Answer with the fastest plan that was found with so few sends.
    out : FILE
        Keep the result as a document.
    """
    _check(time_limit, gap, at_most_sends, out=out)
    opened = cli.open_document(cluster)
    options = _set(formulation, options, opened)
    given = cli.Given(collective, size, root, window=window, tenants=tenants)
    problems = {n or 0: given.problem(opened, chunks=n) for n in _counts(chunks, opened, options)}
    formulation, options = cli.ordering(next(iter(problems.values())), formulation, options)
    begin = partial(formulations.start, formulation=formulation, options=options)
    begin = partial(begin, gap=gap, solver=solver, memory=cli.memory_in(memory))
    store = Store.of(catalog, fresh=front or at_most_sends is not None)
    results, interrupted = _each(problems, begin, time_limit=time_limit, gap=gap, store=store)
    result = _fastest(results, at_most_sends)
    if out is not None:
        write_document(
            out, document(result, positions=opened.positions, annotations=opened.annotations)
        )
    _tell(results, result, several=len(problems) > 1, front=front, as_json=as_json)
    _end(out, interrupted=interrupted)


def _check(
    time_limit: float | None, gap: float | None, at_most_sends: int | None, *, out: Path | None
) -> None:
    cli.positive("--time-limit", time_limit, unit="s")
    cli.positive("--at-most-sends", at_most_sends, unit="")
    cli.positive("--gap", gap, unit="", zero=True)
    cli.writable(out)


def _set(name: str, options: Mapping[str, Any], opened: Document) -> dict[str, Any]:
    """Return the options that are set: a choice as it is spelled, a sketch as its file has it."""
    rows = {
        row.name: row for row in formulations.option_fields(formulations.formulation(name).options)
    }
    found = {}
    for each, value in options.items():
        if isinstance(value, Path):
            found[each] = cli.sketch_in(value, opened.topology)
        elif value is not None:  # the rest is checked by the formulation
            spelled = {choice.replace(" ", "-"): choice for choice in rows[each].choices}
            found[each] = spelled.get(value, value)
    return found


def _counts(
    given: str | None, opened: Document, options: Mapping[str, Any]
) -> tuple[int | None, ...]:
    """Return the chunks per shard that are given, or what a sketch asks for."""
    if given is None and opened.problem is None:
        return (cli.sketched_chunks(options),)
    return read_counts(given)


def _fastest(results: Sequence[Result], sends: int | None) -> Result:
    """Return the fastest plan, or the fastest with at most so many sends.

    Raises
    ------
    SolveError
        If none has so few.
    """
    if sends is None:
        return pareto(results)[-1]
    every = [each for result in results for each in result.front]
    few = [each for each in every if each.sends <= sends]
    if not few:
        least = text.count(min(each.sends for each in every), "send")
        raise SolveError(
            f"no plan with at most {text.count(sends, 'send')} was found; the fewest is {least}"
        )
    return min(few, key=lambda each: each.makespan)


def _tell(
    results: tuple[Result, ...], result: Result, *, several: bool, front: bool, as_json: bool
) -> None:
    """Print the result; if it is of several numbers of chunks, what the others came to."""
    best = pareto(results)[-1]
    if as_json:
        more = {"front": front_rows(results)} if several else {}
        more |= {"sends_front": sends_front(best)} if front else {}
        cli.print_json(answer(result) | more)
        return
    if several:
        print_front(results)
    if front:
        print_sends(best)
    _print(result)


def print_sends(best: Result) -> None:
    """Print makespan against sends."""
    cli.print_table(
        ("pieces per shard", "sends", "makespan", "longer than the best", "found by"),
        (
            (
                f"{row['pieces']:,}",
                f"{row['sends']:,}",
                _micro(row["makespan_us"]),
                f"+{text.share(row['longer'])}" if row["longer"] else text.NONE,
                row["found_by"],
            )
            for row in sends_front(best)
        ),
        right=(0, 1, 2, 3),
    )
    typer.echo()


def _fewer(result: Result) -> str:
    """Say what the next plan with fewer sends takes."""
    if not result.simpler:
        return ""
    row = sends_front(result)[-2]
    longer = text.share(row["longer"])
    return (
        f"{row['pieces']:,} per shard: {_micro(row['makespan_us'])} (+{longer}), "
        f"{row['sends']:,} sends, not {result.sends:,}; see --front"
    )


def _end(out: Path | None, *, interrupted: bool) -> None:
    if out is not None:
        cli.remark(f"the result is in {out}")
    if interrupted:
        cli.remark("interrupted; this is the best schedule found so far")
        raise typer.Exit(cli.INTERRUPTED)


class Interrupted(SolveError):
    """Ctrl-C came before the first schedule."""


def _each(
    problems: Mapping[int, Problem],
    begin: partial[SolveJob],
    *,
    time_limit: float | None,
    gap: float | None,
    store: Store,
) -> tuple[tuple[Result, ...], bool]:
    """Solve the problem of each number of chunks; return the results, and whether Ctrl-C came."""
    interrupted = False

    def solved(count: int, seconds: float | None) -> Result:
        nonlocal interrupted
        found = store.find(problems[count], begin.keywords, time_limit=seconds)
        if found is not None:
            return found
        try:
            result, interrupted = followed(begin(problems[count], time_limit=seconds))
        except Interrupted:
            interrupted = True
            raise
        return store.keep(result, time_limit=seconds)

    results = tried(solved, problems, time_limit=time_limit, gap=gap, over=lambda: interrupted)
    return results, interrupted


def answer(result: Result) -> dict[str, Any]:
    """Return what ``--json`` prints of a result."""
    size, whole = result.size, result.whole_bound
    return {
        **cli.problem_answer(result.problem),
        "formulation": result.formulation,
        "found_by": result.found_by or result.formulation,
        "found_with": found_with(result),
        "proved_by": result.bound.reference,
        "chunks": chunks_per_shard(result),
        "status": result.verdict,
        "stop": result.stop.name,
        "makespan_us": result.makespan,
        "algbw_GBps": result.algbw,
        "busbw_GBps": result.busbw,
        "bound_us": result.bound.makespan,
        "bound_kind": result.bound.kind,
        "gap": result.gap,
        "whole_bound_us": None if whole is None else whole.makespan,
        "whole_gap": result.whole_gap,
        "steady_us": result.steady_makespan,
        "steady_gap": result.steady_gap,
        "solve_s": result.solve_time,
        "sends": result.sends,
        "epochs": result.epochs,
        "variables": None if size is None else size.variables,
        "constraints": None if size is None else size.constraints,
        "log": list(result.log),
        "tenants": cli.tenants_answer(result),
    }


def found_with(result: Result) -> str:
    """Return what found the plan: a solver, a search of our own or a construction."""
    return formulations.formulation(result.found_by or result.formulation).solver


def followed(job: SolveJob) -> tuple[Result, bool]:
    """Watch a solve until it ends; Ctrl-C ends it and keeps its best plan.

    Returns
    -------
    The result, and whether it is what an interrupt left.

    Raises
    ------
    CclError
        If there is none.
    """
    with interruptible(job) as interrupted:
        _show(job)
        try:
            return job.result(), interrupted.is_set()
        except SolveError:
            if not interrupted.is_set():
                raise
            if job.best is None:
                raise Interrupted(
                    "interrupted before the first schedule was found; nothing is kept"
                ) from None
            return replace(job.best, stop=Stop.CANCELLED), True


def _flag(row: OptionField) -> str:
    name = row.name.replace("_", "-")
    return f"--{name}/--no-{name}" if row.kind == "bool" else f"--{name}"


def _annotation(row: OptionField) -> Any:
    kinds: dict[str, Any] = {
        "int": int | None,
        "float": float | None,
        "bool": bool | None,
        "sketch": Path | None,
    }
    words = "|".join(each.replace(" ", "-") for each in row.choices)
    words = "FILE" if row.kind == "sketch" else words
    told = f"{row.help or row.label}{f' ({row.unit})' if row.unit else ''}"
    if row.kind == "bool":
        told += f"; by default {'yes' if row.default else 'no'}"
    elif not row.optional and row.default != "":
        told += f"; by default {str(row.default).replace(' ', '-')}"
    flag = typer.Option(_flag(row), metavar=words or None, help=told)
    return Annotated[kinds.get(row.kind, str | None), flag]


@contextmanager
def interruptible(job: SolveJob | ComparisonJob) -> Iterator[threading.Event]:
    """Let Ctrl-C end the solve rather than this program, and the job end with the block."""
    interrupted = threading.Event()

    def stop(_signal: int, _frame: object) -> None:
        interrupted.set()
        # Not here: a handler may have stopped this very thread in the middle of a wait for it.
        threading.Thread(target=job.cancel).start()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
        job.cancel()


def _show(job: SolveJob) -> None:
    """Show on a terminal how a solve stands, until it ends."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,
        disable=not console.is_terminal,
    ) as shown:
        task = shown.add_task("starting", total=None)
        for news in job:
            best, proved = _micro(news.incumbent), _micro(news.bound)
            shown.update(task, description=f"best {best}   bound {proved}   {news.message}")


def _micro(time: float | None) -> str:
    return text.NONE if time is None else f"{time:.6g} µs"


def _steady(result: Result) -> str:
    """Return what each of many repetitions takes, and how far above its bound that is."""
    if result.steady_makespan is None:
        return ""
    gap = "" if result.steady_gap is None else f", gap {text.share(result.steady_gap)}"
    return f"{_micro(result.steady_makespan)}{gap}"


def _print(result: Result) -> None:
    collective, size = result.problem.collective, result.size
    cli.print_facts(
        f"{collective.kind} of {text.size(collective.size)} on {result.problem.topology} "
        f"by {result.formulation}: {result.verdict}",
        [
            ("makespan", _micro(result.makespan)),
            ("bound", f"{_micro(result.bound.makespan)} ({result.bound.kind}), for every plan"),
            ("gap", text.share(result.gap)),
            *cli.whole_chunk_rows(result),
            ("chunks per shard", f"{chunks_per_shard(result)}" if _in_chunks(result) else ""),
            ("fewer pieces", _fewer(result)),
            ("steady state", _steady(result)),
            ("found by", f"{result.found_by or result.formulation} ({found_with(result)})"),
            ("proved by", result.bound.reference),
            ("algbw", text.bandwidth(result.algbw)),
            ("busbw", text.bandwidth(result.busbw)),
            *cli.condition_rows(result),
            ("epochs", "" if result.epochs is None else f"{result.epochs:,}"),
            ("model", _model(size.variables, size.constraints) if size else ""),
            ("solved in", text.seconds(result.solve_time)),
            ("stopped", result.stop.value),
            *(("note", sentence) for sentence in result.log),
        ],
    )


def _in_chunks(result: Result) -> bool:
    return isinstance(result.plan, Schedule) and result.problem.collective.kind != "custom"


def _model(variables: int, constraints: int) -> str:
    return f"{text.count(variables, 'variable')}, {text.count(constraints, 'constraint')}"
