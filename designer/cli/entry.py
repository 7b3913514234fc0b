"""Putting the commands together, and turning every error of the user's into one sentence."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from ccl import __version__
from ccl.errors import CclError
from designer.cli import (
    bound,
    browse,
    catalog,
    compare,
    conditions,
    design,
    execute,
    files,
    limits,
    solve,
)
from designer.cli.request import complain

BAD_INPUT = 2
INTERRUPTED = 130

# The root of what Typer raises on bad usage; which package it lies in depends on Typer's version.
UsageError: type[Exception] = typer.BadParameter.__mro__[2]


def run(given: Sequence[str]) -> NoReturn:
    """Run the command that stands after the name of the program, and leave."""
    try:
        code = application(given)(given or ["--help"], prog_name="topoloom", standalone_mode=False)
    except CclError as error:
        code = complain(str(error))
    except UsageError as error:
        code = complain(_usage(error, given))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough; nothing may be written to it when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code or 0)


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the commands; `solve` takes the options of the formulation that `arguments` name.

    Raises
    ------
    ProblemError
        If they name a formulation that does not exist.
    """
    app = typer.Typer(
        help="Draw a GPU cluster, solve its collectives, prove how good the answer is.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_about)
    app.command("design")(design.design)
    app.command("gallery")(browse.gallery)
    app.command("solve")(solve.command(solve.formulation_in(arguments)))
    app.command("bound")(bound.bound)
    app.command("optimum")(bound.optimum)
    app.command("upgrade")(limits.upgrade)
    app.command("limits")(limits.limits)
    app.command("failures")(conditions.failures)
    app.command("stragglers")(conditions.stragglers)
    app.command("formulation")(conditions.formulation)
    app.command("compare")(compare.compare)
    app.command("sweep")(compare.sweep)
    app.add_typer(catalog.commands(), name="catalog")
    app.command("verify")(files.verify)
    app.command("explain")(files.explain)
    app.command("diff")(files.diff)
    app.command("execute")(execute.execute)
    app.command("lint")(execute.lint_)
    app.command("run")(execute.run_)
    app.command("export")(files.export)
    app.command("import")(files.import_)
    app.command("formats")(files.formats)
    app.command("link")(files.link)
    app.command("worker")(design.worker)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"topoloom {__version__}")
        raise typer.Exit


def _about(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    """Draw a GPU cluster, solve its collectives, prove how good the answer is."""


def _usage(error: Exception, arguments: Sequence[str]) -> str:
    """Say in one sentence what is wrong with the arguments."""
    unknown = getattr(error, "option_name", None)
    chosen = solve.formulation_in(arguments)
    if unknown and chosen is not None and "No such option" in str(error):
        return solve.unknown_option(unknown, chosen)
    told = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    known = {each.name for each in application().registered_commands}
    command = [each for each in arguments[:1] if each in known]
    return f"{told.rstrip('.')}; see {' '.join(['topoloom', *command, '--help'])}"
