"""``--catalog``: plans that were solved before, and a place for those that are solved now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ccl.problem import Problem
from ccl.result import Result

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog

USUAL = "usual"
"""What stands for the catalog that lies among the user's data."""

CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="Answer from this catalog what solving again could not better, and keep what is "
        f"solved; '{USUAL}' is your own. By default nothing is looked up or kept.",
        show_default=False,
    ),
]


FileOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help=f"Which catalog; by default, and as '{USUAL}', your own.",
        show_default=False,
    ),
]


def opened(given: str | None) -> Catalog:
    """Open the catalog at a path; none given, or `USUAL`, is the user's own.

    Raises
    ------
    CatalogError
        If it cannot be used.
    """
    from formulations.campaigns.catalog import Catalog  # noqa: PLC0415  it loads a database library

    return Catalog(None if given in (None, USUAL) else Path(given or ""))


@dataclass(frozen=True)
class Store:
    """A catalog beside a solve, or none."""

    catalog: Catalog | None

    @classmethod
    def of(cls, given: str | None) -> Store:
        """Return that of ``--catalog``; errors as `opened`."""
        return cls(None if given is None else opened(given))

    def find(
        self, problem: Problem, asked: Mapping[str, Any], *, time_limit: float | None
    ) -> Result | None:
        """Return a plan to which solving as `asked` could not add, or None."""
        if self.catalog is None:
            return None
        return self.catalog.find(
            problem,
            asked["formulation"],
            options=asked["options"],
            gap=asked["gap"],
            time_limit=time_limit,
            enough=True,
        )

    def keep(self, result: Result, *, time_limit: float | None) -> Result:
        """Keep a result, and return it."""
        if self.catalog is not None:
            self.catalog.keep(result, time_limit=time_limit)
        return result
