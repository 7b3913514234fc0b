"""``topoloom gallery``: what clusters there are, and what each rests on.

``--catalog``: plans that were solved before, and a place for those that are solved now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ccl import text
from ccl.errors import ProblemError
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import document, write_document
from designer.cli import request as cli
from gallery import Entry, Parameter, catalog, entry, open_cluster

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog


def gallery(name: str | None = None, *, out: Path | None = None, as_json: bool = False) -> None:
    """List the clusters, or tell of one: its figures and what each rests on.

    Parameters
    ----------
    name : [NAME]
        A cluster, with arguments: ndv2:hosts=2.
    out : FILE
        Write the cluster as a topology document.
    """
    if name is None:
        if out is not None:
            raise ProblemError(
                f"--out {out} needs the name of a cluster to write, such as ndv2:hosts=2"
            )
        _list(as_json=as_json)
        return
    cli.writable(out)
    topology = open_cluster(name)
    found = entry(name.partition(":")[0])
    if out is not None:
        write_document(out, document(topology, positions=layout(topology)))
    told = {
        "topology": topology.name,
        "gpus": len(topology.ranks),
        "devices": len(topology.devices),
        "links": len(topology.links),
    }
    if as_json:
        cli.print_json(_told(found) | told)
        return
    _print_entry(found, told)
    if out is not None:
        cli.remark(f"the topology is in {out}")


def _list(*, as_json: bool) -> None:
    if as_json:
        cli.print_json({"clusters": [_told(each) for each in catalog()]})
        return
    rows = [
        (each.name, each.title, " ".join(_default(row) for row in each.parameters), each.source)
        for each in catalog()
    ]
    cli.print_table(("name", "cluster", "takes", "source"), rows)


def _told(found: Entry) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.title,
        "family": found.family,
        "summary": found.summary,
        "source": found.source,
        "parameters": [
            {
                "name": each.name,
                "kind": each.kind,
                "default": list(each.default) if isinstance(each.default, tuple) else each.default,
                "choices": list(each.choices),
                "meaning": each.meaning,
            }
            for each in found.parameters
        ],
        "figures": [
            {"what": each.what, "value": each.value, "standing": each.standing}
            for each in found.figures
        ],
    }


def _print_entry(found: Entry, told: dict[str, Any]) -> None:
    counts = (
        f"{text.count(told['gpus'], 'GPU')}, {text.count(told['devices'], 'device')}, "
        f"{text.count(told['links'], 'one-way link')}"
    )
    cli.print_facts(
        told["topology"],
        [
            ("what", found.summary),
            ("has", counts),
            ("source", found.source),
            *(("takes", _takes(each)) for each in found.parameters),
        ],
    )
    cli.print_table(
        ("figure", "value", "standing"),
        [(each.what, each.value, each.standing) for each in found.figures],
    )


def _takes(parameter: Parameter) -> str:
    choices = f" ({', '.join(parameter.choices)})" if parameter.choices else ""
    return f"{_default(parameter)}: {parameter.meaning}{choices}"


def _default(parameter: Parameter) -> str:
    """Write an argument with its default as it is typed."""
    value = parameter.default
    if isinstance(value, tuple):
        value = "x".join(map(str, value))
    return f"{parameter.name}={str(value).lower() if isinstance(value, bool) else value}"


USUAL = "usual"
"""What stands for the catalog that lies among the user's data."""


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
    """A catalog beside a solve, or none; where plans are to be solved `fresh`, none is found."""

    catalog: Catalog | None
    fresh: bool = False

    @classmethod
    def of(cls, given: str | None, *, fresh: bool = False) -> Store:
        """Return that of ``--catalog``; errors as `opened`."""
        return cls(None if given is None else opened(given), fresh)

    def find(
        self, problem: Problem, request: Mapping[str, Any], *, time_limit: float | None
    ) -> Result | None:
        """Return a plan to which solving as `asked` could not add, or None."""
        if self.catalog is None or self.fresh:
            return None
        return self.catalog.find(
            problem,
            request["formulation"],
            options=request["options"],
            gap=request["gap"],
            time_limit=time_limit,
            enough=True,
        )

    def keep(self, result: Result, *, time_limit: float | None) -> Result:
        """Keep a result, and return it."""
        if self.catalog is not None:
            self.catalog.keep(result, time_limit=time_limit)
        return result
