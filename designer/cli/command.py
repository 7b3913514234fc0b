"""How commands fail, and the flags that a formulation brings to ``solve``."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ccl.errors import CclError, ProblemError
from formulations import DEFAULT, OptionField, formulation, option_fields

BAD_INPUT = 2


class Commands(TyperGroup):
    """All commands; what is wrong with the input is said in one sentence."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and end the process with its exit code."""
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except CclError as error:
            _fail(str(error))
        except typer.TyperException as error:
            _fail(error.format_message())
        except typer.Abort:
            _fail("it was interrupted")
        sys.exit(code or 0)


class SolveCommand(TyperCommand):
    """``solve``, whose further flags are the options of the formulation chosen."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take out the formulation's flags, for `taken`, and parse the rest."""
        chosen = formulation(_value_of("--formulation", args) or DEFAULT)
        own = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        rows = option_fields(chosen.options)
        rest, ctx.meta[__name__] = split_flags(args, rows, own=own, formulation=chosen.name)
        return super().parse_args(ctx, rest)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Add every formulation's own flags to the help."""
        from formulations import available  # noqa: PLC0415  only help needs them all

        super().format_help(ctx, formatter)
        for each in available():
            rows = option_fields(each.options)
            if rows:
                typer.echo(f" With --formulation {each.name}:")
                typer.echo("\n".join(f"   {_described(row)}" for row in rows) + "\n")


def taken(context: typer.Context) -> dict[str, Any]:
    """Return the options of the formulation that the command line gave."""
    return dict(context.meta.get(__name__, {}))


def split_flags(
    args: Sequence[str], rows: Sequence[OptionField], *, own: set[str], formulation: str
) -> tuple[list[str], dict[str, Any]]:
    """Part the flags of a formulation from the other arguments.

    Parameters
    ----------
    args
        As typed.
    rows
        The formulation's options.
    own
        Flags of the command itself.
    formulation
        Its name, for the message.

    Returns
    -------
    The other arguments, and the formulation's options by name.

    Raises
    ------
    ProblemError
        If a flag is neither, or one of the formulation's lacks its value.
    """
    flags = {_flag(row): row for row in rows}
    negated = {f"--no-{_flag(row)[2:]}": row for row in rows if row.kind == "bool"}
    rest: list[str] = []
    options: dict[str, Any] = {}
    waiting = iter(args)
    for arg in waiting:
        flag, equals, value = arg.partition("=")
        if flag in negated and not equals:
            options[negated[flag].name] = False
        elif flag in flags:
            row = flags[flag]
            text = value if equals or row.kind == "bool" else next(waiting, "")
            options[row.name] = _read(row, text, bare=not equals)
        elif flag.startswith("--") and len(flag) > len("--") and flag not in own:
            has = f"those of {formulation} are {', '.join(flags)}" if flags else "it has none"
            msg = f"{flag} is not an option of solve or of {formulation}; {has}"
            raise ProblemError(msg)
        else:
            rest.append(arg)
    return rest, options


def _flag(row: OptionField) -> str:
    return f"--{row.name.replace('_', '-')}"


def _read(row: OptionField, text: str, *, bare: bool) -> Any:
    """Read the value of a flag as far as the options' own check does not."""
    if row.kind == "bool":
        if bare:
            return True
        if text.lower() not in {"true", "false"}:
            msg = f"{_flag(row)} is {text!r}; give true or false"
            raise ProblemError(msg)
        return text.lower() == "true"
    if not text:
        msg = f"{_flag(row)} has no value; give {_wanted(row)}"
        raise ProblemError(msg)
    if row.kind == "choice":
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        msg = f"{_flag(row)} is {text!r}; give {_wanted(row)}"
        raise ProblemError(msg)
    return number


def _wanted(row: OptionField) -> str:
    if row.kind == "choice":
        return f"one of {', '.join(row.choices)}"
    kind = "a whole number" if row.kind == "int" else "a number"
    return f"{kind} in {row.unit}" if row.unit else kind


def _described(row: OptionField) -> str:
    """Describe a flag in a line of help."""
    name = _flag(row)
    if row.kind == "bool":
        name += f"/--no-{name[2:]}"
    else:
        name += f" <{'|'.join(row.choices) or row.unit or row.kind}>"
    default = "" if row.default is None else f" [default: {row.default}]"
    return f"{name}  {row.help or row.label}{default}"


def _value_of(flag: str, args: Sequence[str]) -> str | None:
    """Find the value of a flag before anything is parsed."""
    for place, arg in enumerate(args):
        if arg == flag and place + 1 < len(args):
            return args[place + 1]
        if arg.startswith(f"{flag}="):
            return arg.partition("=")[2]
    return None


def _fail(message: str) -> None:
    """End with a sentence on stderr, in one line whatever it was made of."""
    typer.echo(f"topoloom: {' '.join(message.split())}", err=True)
    sys.exit(BAD_INPUT)
