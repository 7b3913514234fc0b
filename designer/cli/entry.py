"""Putting the commands together, and turning every error of the user's into one sentence."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from ccl import __version__
from ccl.errors import CclError
from designer.cli.request import command, complain

COMMANDS = {
    "design": "design.design",
    "gallery": "gallery.gallery",
    "solve": "solve.command",
    "bound": "bound.bound",
    "optimum": "bound.optimum",
    "upgrade": "limits.upgrade",
    "propose": "propose.propose",
    "limits": "limits.limits",
    "bill": "gallery.bill",
    "failures": "failures.failures",
    "stragglers": "failures.stragglers",
    "formulation": "bound.formulation",
    "compare": "compare.compare",
    "sweep": "compare.sweep",
    "catalog": "catalog.commands",
    "verify": "files.verify",
    "explain": "files.explain",
    "diff": "files.diff",
    "execute": "execute.execute",
    "lint": "execute.lint_",
    "run": "execute.run_",
    "export": "files.export",
    "import": "files.import_",
    "formats": "files.formats",
    "link": "files.link",
    "worker": "design.worker",
}
"""Command -> module and function; a module is loaded when its command is given, or all for help."""

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
    """Return the commands, or the one that `arguments` begin with.

    `solve` takes the options of the formulation that they name.

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
    for name in [each for each in arguments[:1] if each in COMMANDS] or COMMANDS:
        if name == "catalog":
            app.add_typer(_part(COMMANDS[name])(), name=name)
        elif name == "solve":
            chosen = _part("solve.formulation_in")(arguments)
            app.command(name)(_part(COMMANDS[name])(chosen))
        else:
            app.command(name)(command(_part(COMMANDS[name])))
    return app


def _part(place: str) -> Callable[..., Any]:
    """Return what is called ``module.function`` among the commands."""
    module, name = place.split(".")
    found: Callable[..., Any] = getattr(import_module(f"designer.cli.{module}"), name)
    return found


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
    chosen = _part("solve.formulation_in")(arguments) if "solve" in arguments[:1] else None
    if unknown and chosen is not None and "No such option" in str(error):
        return str(_part("solve.unknown_option")(unknown, chosen))
    told = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    named = [each for each in arguments[:1] if each in COMMANDS]
    return f"{told.rstrip('.')}; see {' '.join(['topoloom', *named, '--help'])}"
