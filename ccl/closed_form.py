"""What a published formula says of a plan, beside what the plan takes on this graph.

Formulas of collectives count steps and bytes on links that are all alike and never shared. On a
drawn cluster the same steps share links, and links differ. Four times tell where a difference
comes from: the formula, with the slowest way between neighbours; every message alone on its own
way, step after step; the messages of a step together; and the replay, in which steps overlap.
Shared limits are left out before the replay.
"""

from __future__ import annotations

from dataclasses import dataclass

SAME = 1e-9
"""Times within this share of each other are the same."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A formula and what becomes of it, in µs.

    Parameters
    ----------
    expression
        The formula as published, in α, β, p ranks and m bytes.
    alpha, beta
        µs and µs per byte that it is evaluated with: the largest latency and the slowest link of
        the ways between ranks that the steps use.
    makespan
        What it comes to.
    alone
        Step after step, each as long as its slowest message would take alone on its way; where
        the formula counts ports, as the fullest port of a GPU would.
    in_steps
        Step after step, the messages of a step together on the links.
    steps
        How many there are.
    busiest
        The link that most messages of one step cross, or None where none is shared.
    crowd
        How many these are.
    elsewhere
        Whether the plan sends over other ways than the steps do, where these are quicker.
    """

    expression: str
    alpha: float
    beta: float
    makespan: float
    alone: float
    in_steps: float
    steps: int
    busiest: tuple[str, str] | None = None
    crowd: int = 1
    elsewhere: bool = False

    def why(self, makespan: float) -> str:
        """Say in one sentence how a replay of `makespan` µs differs from the formula, and why."""
        reasons = []
        if self.alone < self.makespan * (1 - SAME):
            reasons.append(f"some links are faster than the slowest ({self.alone:.6g} µs)")
        if self.alone > self.makespan * (1 + SAME):
            reasons.append(f"its messages take longer ways ({self.alone:.6g} µs)")
        if self.in_steps > self.alone * (1 + SAME):
            where = (
                ""
                if self.busiest is None
                else f", {self.crowd} at once on {'->'.join(self.busiest)}"
            )
            reasons.append(f"messages share links{where} ({self.in_steps:.6g} µs)")
        if self.in_steps < self.alone * (1 - SAME):
            reasons.append(
                f"GPUs use several links at once or pass on what they have ({self.in_steps:.6g} µs)"
            )
        if makespan < self.in_steps * (1 - SAME):
            why = "other ways are quicker" if self.elsewhere else "steps overlap"
            reasons.append(f"{why} ({makespan:.6g} µs)")
        if makespan > self.in_steps * (1 + SAME):
            reasons.append(f"shared limits or the order of sends slow it ({makespan:.6g} µs)")
        begin = f"{self.expression} = {self.makespan:.6g} µs"
        if not reasons:
            return f"{begin}, and so it is here"
        return f"{begin}; {', then '.join(reasons)}"
