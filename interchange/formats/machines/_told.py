"""What readers of machines share: settings as typed, counts in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ccl.errors import FormatError
from interchange.formats.format import Asked, Question

MOST_BANDWIDTH = 1e6
"""GB/s that a setting may say of a link."""


def choice(asked: Asked, key: str, *, among: Mapping[str, object], usual: str) -> str:
    """Return the setting called `key`, or what is usual.

    Raises
    ------
    FormatError
        If it is not `among` what may be said.
    """
    said = asked.settings.get(key, usual).strip() or usual
    if said not in among:
        msg = f"{asked.name}: the setting {key} is {said!r}; it may be {', '.join(among)}"
        raise FormatError(msg)
    return said


def answer(asked: Asked, key: str, *, choices: Mapping[str, str], doubt: str) -> str:
    """Return the setting called `key`, or ask for it; errors as `choice`.

    Raises
    ------
    Question
        If it is not said, with what is in `doubt`.
    """
    if not asked.settings.get(key, "").strip():
        msg = f"{asked.name}: {doubt}"
        raise Question(msg, key=key, choices=choices)
    return choice(asked, key, among=choices, usual="")


def yes(asked: Asked, key: str) -> bool:
    """Say whether the setting called `key` is true; errors as `choice`."""
    return choice(asked, key, among={"true": 1, "false": 0}, usual="false") == "true"


def bandwidth(asked: Asked, key: str, *, usual: float) -> float:
    """Return the GB/s of the setting called `key`, or what is usual.

    Raises
    ------
    FormatError
        If it is no number, or not between 0 and `MOST_BANDWIDTH`.
    """
    said = asked.settings.get(key, "").strip()
    if not said:
        return usual
    try:
        number = float(said)
    except ValueError:
        number = math.nan
    if not 0 < number <= MOST_BANDWIDTH:
        msg = (
            f"{asked.name}: the setting {key} is {said!r}; it is a bandwidth in GB/s above 0 "
            f"and up to {MOST_BANDWIDTH:,.0f}"
        )
        raise FormatError(msg)
    return number


def count(number: int, what: str, many: str = "") -> str:
    """Return ``1 GPU``, ``8 GPUs``; `many` where an s does not do."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"
