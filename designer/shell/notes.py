"""Messages that float in for a while: what went wrong, what was restored."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from ccl import text
from designer.shell.markup import icon

Tone = Literal["bad", "good", "plain"]
_LOOK: dict[Tone, tuple[str, str, str]] = {
    "bad": ("orange", "warning", "That did not work"),
    "good": ("teal", "check", "Done"),
    "plain": ("azure", "info", "Note"),
}
_numbers = itertools.count()


def note(sentence: str, tone: Tone = "bad", *, title: str = "") -> list[dict[str, Any]]:
    """Return a notification for the container; a bad one stays longer."""
    colour, picture, usual = _LOOK[tone]
    return [
        {
            "action": "show",
            "id": f"note-{next(_numbers)}",
            "title": title or usual,
            "message": text.sentence(sentence),
            "color": colour,
            "icon": icon(picture),
            "autoClose": 20_000 if tone == "bad" else 6000,
            "withBorder": True,
        }
    ]
