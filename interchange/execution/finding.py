"""What is wrong with a program, in a sentence and with the step to point at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

FindingKind = Literal[
    "call",
    "size",
    "slot",
    "after",
    "connection",
    "unmatched",
    "count",
    "deadlock",
    "overlap",
    "hazard",
    "unwritten",
    "result",
    "input",
    "room",
    "custom",
    "limit",
    "again",
    "cut",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or that a user should know.

    Parameters
    ----------
    kind
        ``call`` (nobody may call it), ``size`` (of a buffer), ``slot`` (a step's places),
        ``after`` (a wait for a step that is not there), ``connection`` (who sends to whom),
        ``unmatched`` (a send or receive without its other end), ``count`` (the two ends differ),
        ``deadlock``, ``overlap`` (a step's source and destination share chunks), ``hazard`` (two
        steps that nothing orders), ``unwritten`` (a step reads what nothing wrote), ``result``
        (not what the collective promises); as remarks ``input`` (it is written), ``room`` (of
        connections), ``custom`` (nothing to compare with) and ``limit`` (of the runtime); ``again``
        (a second call meets the first) and, as a remark, ``cut`` (chunks are counted in parts).
    sentence
        For the user.
    rank, block, step
        Where it is, as far as it has a place.
    """

    kind: FindingKind
    sentence: str
    rank: int | None = None
    block: int | None = None
    step: int | None = None

    def prefixed(self, words: str) -> Finding:
        """Return it with `words` before its sentence."""
        return replace(self, sentence=words + self.sentence)


def place(rank: int, block: int, step: int) -> str:
    """Return how a step is called in sentences."""
    return f"rank {rank}, thread block {block}, step {step}"
