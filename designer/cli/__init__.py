"""The command line: ``topoloom design|gallery|propose|solve|compare|bound|verify|export|import``.

Standard output carries answers, one JSON object with ``--json``; progress and errors go to
standard error. Bad input ends with exit code 2 and one sentence, a plan that breaks a rule ends
``verify`` with 1, and an interrupted solve ends with 130 after its best plan was printed and kept.
"""

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from ccl import __version__


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave; the console script ``topoloom``.

    Parameters
    ----------
    arguments
        What stands after the name of the program; by default what the system gave.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:  # asked by programs, which need not wait for the commands
        sys.stdout.write(f"topoloom {__version__}\n")
        sys.exit(0)
    with _solver(given):
        from designer.cli.entry import run  # noqa: PLC0415  it loads every command

        run(given)
    sys.exit(0)


def _solver(given: Sequence[str]) -> AbstractContextManager[None]:
    """Begin the process of a solve before anything is loaded here, so that both load at once."""
    if given[:1] != ["solve"] or {"-h", "--help"} & {*given}:
        return nullcontext()
    from formulations import begun_ahead  # noqa: PLC0415  other commands do without

    return begun_ahead("formulations")
