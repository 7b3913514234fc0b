"""The command line: ``topoloom design|gallery|solve|bound|verify|export|import``.

What is bad input ends with one sentence on stderr and exit code 2, a plan that breaks a rule with
exit code 1; ``--json`` leaves nothing but JSON on stdout. The browser application and the solver
are loaded only by the commands that need them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ccl import __version__
from designer.cli.clusters import design, gallery
from designer.cli.command import Commands, SolveCommand
from designer.cli.files import export, import_
from designer.cli.proving import bound, verify
from designer.cli.solving import solve

app = typer.Typer(
    name="topoloom",
    cls=Commands,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(design)
app.command()(gallery)
app.command(cls=SolveCommand)(solve)
app.command()(bound)
app.command()(verify)
app.command()(export)
app.command("import")(import_)


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Draw a GPU cluster, solve its collectives, prove how good the answer is."""
    if version:
        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command that the arguments name; the console script ``topoloom``."""
    app(prog_name="topoloom")
