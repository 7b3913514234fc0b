"""Searches for networks in a catalog: what was wanted, what was found, how it was looked at.

Of each request there is one study, the last; a request is its plain values, its time to search
among them. How it was looked at, the axes and the prices that were typed, stays when the same is
searched again. The networks are the drawings and figures as the search has told them.
"""

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from ccl import __version__, text
from ccl.errors import CatalogError
from formulations.campaigns.catalog.catalog import Catalog
from formulations.campaigns.catalog.relabelling import squeezed, unsqueezed
from formulations.campaigns.catalog.tables import PROPOSALS

Json = dict[str, Any]


class View(msgspec.Struct, frozen=True):
    """How a study was looked at.

    Parameters
    ----------
    axes
        Names of the two respects of the plot, the one that goes up first; empty for the usual.
    prices
        Dollars of parts by name, where they were typed.
    """

    axes: tuple[str, ...] = ()
    prices: dict[str, float] = msgspec.field(default_factory=dict)


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    request: Json
    networks: dict[str, Json]
    front: Json


@dataclass(frozen=True, kw_only=True)
class ProposalEntry:
    """A study as it is listed.

    Parameters
    ----------
    number
        Of the study in its catalog.
    digest
        Of its request.
    title
        What was wanted, in words.
    best
        Name of the network that is the best at the mix.
    networks
        How many were found.
    seconds
        For how long it was searched.
    version, stored
        The Topoloom that has found it, and when, in UTC.
    nbytes
        What it takes.
    """

    number: int
    digest: str
    title: str
    best: str
    networks: int
    seconds: float
    version: str
    stored: str
    nbytes: int


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A study.

    Parameters
    ----------
    request
        Plain values of `formulations.proposals.Request`.
    networks
        By key, the best at the mix first.
    front
        The last report of all of them.
    view
        How it was looked at.
    """

    request: Json
    networks: dict[str, Json]
    front: Json
    view: View = field(default_factory=View)


def digest_of(request: Mapping[str, Any]) -> str:
    """Return what tells a request from others."""
    content = msgspec.json.encode(dict(request), order="sorted")
    return hashlib.sha256(content).hexdigest()[:32]


def title_of(request: Mapping[str, Any]) -> str:
    """Say what is wanted."""
    gpus, ports = int(request["gpus"]), int(request["ports"])
    said = f"{text.count(gpus, 'GPU')} with {text.count(ports, 'port')}"
    said += f" of {text.bandwidth(float(request['bandwidth']))}"
    if request.get("host"):
        said += f", hosts {request['host']}"
    if request.get("radix"):
        said += f", switches of {request['radix']:,} ports"
    return said


def _view(words: str) -> View:
    try:
        return msgspec.json.decode(words, type=View)
    except msgspec.DecodeError:  # how it was looked at is not worth a refusal
        return View()


class Proposals:
    """The searches for networks that a catalog keeps; errors are `CatalogError`.

    Parameters
    ----------
    catalog
        Where they lie.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def keep(self, study: Proposal, *, viewed: bool = False) -> None:
        """Keep a study in place of an earlier one of its request.

        Parameters
        ----------
        study
            With at least one network.
        viewed
            Whether its view counts, too; else that of the earlier one stays.
        """
        content = {"request": study.request, "networks": study.networks, "front": study.front}
        order = list(study.networks)  # the keys of what is squeezed are sorted
        content["front"] = {**study.front, "order": order}
        values = {
            "title": title_of(study.request),
            "best": study.networks[order[0]]["name"],
            "networks": len(order),
            "seconds": float(study.front.get("seconds", 0.0)),
            "version": __version__,
            "stored": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
            "content": squeezed(content),
        }
        if viewed:
            values["view"] = msgspec.json.encode(study.view).decode()
        with self.catalog.writing() as connection:
            new = insert(PROPOSALS).values(digest=digest_of(study.request), **values)
            connection.execute(new.on_conflict_do_update(index_elements=["digest"], set_=values))

    def look(self, request: Mapping[str, Any], view: View) -> bool:
        """Note how the study of a request is looked at; return whether that is new."""
        words = msgspec.json.encode(view).decode()
        mine = (PROPOSALS.c.digest == digest_of(request)) & (PROPOSALS.c.view != words)
        with self.catalog.reading() as connection:  # nearly always there is nothing to write
            if connection.execute(select(PROPOSALS.c.id).where(mine)).first() is None:
                return False
        with self.catalog.writing() as connection:
            return connection.execute(update(PROPOSALS).where(mine).values(view=words)).rowcount > 0

    def view(self, request: Mapping[str, Any]) -> View:
        """Return how the study of a request was looked at last, the usual where there is none."""
        wanted = select(PROPOSALS.c.view).where(PROPOSALS.c.digest == digest_of(request))
        with self.catalog.reading() as connection:
            found = connection.execute(wanted).scalar()
        return _view("{}" if found is None else found)

    def entries(self) -> tuple[ProposalEntry, ...]:
        """List them, the last first."""
        plain = [each.name for each in fields(ProposalEntry) if each.name in PROPOSALS.c]
        nbytes = func.length(PROPOSALS.c.content).label("nbytes")
        wanted = select(PROPOSALS.c.id.label("number"), nbytes, *(PROPOSALS.c[n] for n in plain))
        with self.catalog.reading() as connection:
            rows = connection.execute(wanted.order_by(PROPOSALS.c.stored.desc(), PROPOSALS.c.id))
            return tuple(ProposalEntry(**row) for row in rows.mappings())

    def load(self, which: int | str) -> Proposal | None:
        """Return a study by its number or the digest of its request, None if it is not there.

        Raises
        ------
        CatalogError
            If it is damaged.
        """
        column = PROPOSALS.c.id if isinstance(which, int) else PROPOSALS.c.digest
        wanted = select(PROPOSALS.c.id, PROPOSALS.c.content, PROPOSALS.c.view)
        with self.catalog.reading() as connection:
            row = connection.execute(wanted.where(column == which)).first()
        if row is None:
            return None
        try:
            read = msgspec.json.decode(unsqueezed(row.content), type=_Content)
            view = _view(row.view)
            networks = {key: read.networks[key] for key in read.front["order"]}
        except (CatalogError, zlib.error, msgspec.DecodeError, KeyError, TypeError) as error:
            raise CatalogError(
                f"study {row.id} of {self.catalog.path} is damaged: {error}; remove it"
            ) from error
        return Proposal(request=read.request, networks=networks, front=read.front, view=view)

    def forget(self, numbers: Iterable[int]) -> int:
        """Remove studies; return how many were there."""
        with self.catalog.writing() as connection:
            return sum(
                connection.execute(delete(PROPOSALS).where(PROPOSALS.c.id == number)).rowcount
                for number in numbers
            )
