"""What all plans can do: tell themselves in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ccl.explain.told import Plan
    from ccl.problem import Problem


class InWords:
    """A plan that can be told; `ccl.explain` does it."""

    def explain(
        self,
        problem: Problem,
        *,
        chunk: int | None = None,
        link: tuple[str, str] | None = None,
        rank: int | None = None,
        host: str | None = None,
    ) -> str:
        """Tell it in words, or what of it concerns a chunk, a link, a rank or a host.

        Lines, as `ccl.explain.explain` says them; of more than one of these, what concerns all.

        Raises
        ------
        ScheduleError
            If it breaks a rule.
        ProblemError
            If there is no such chunk, link, rank or host.
        """
        from ccl.explain import explain  # noqa: PLC0415  it needs the replay, which needs this

        return explain(problem, cast("Plan", self), chunk=chunk, link=link, rank=rank, host=host)
