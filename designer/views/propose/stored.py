"""Searches for networks that a catalog keeps: stored when they end, opened again, remembered.

What starts a search is wrapped; it is stored, whatever ended it, with all that was found. A catalog
that fails costs nothing but itself. Where the server has begun anew, the page finds its search in
the catalog by the digest of its request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ccl.errors import CclError
from designer.server.sessions import sealed
from designer.studies import Studies
from designer.views.propose.running import Json, Standing

if TYPE_CHECKING:
    from formulations.campaigns.catalog import Catalog, Proposal

log = logging.getLogger(__name__)


def storing(start: Callable[..., Any], catalog: Catalog | None) -> Callable[..., Any]:
    """Return what starts a search as `start` does, and stores what it has found when it ends.

    Parameters
    ----------
    start
        Starts a job of a request.
    catalog
        Where searches are kept; None returns `start`.
    """
    if catalog is None:
        return start

    def begin(request: Mapping[str, Any], memory: float | None = None) -> StoredSearch:
        return StoredSearch(catalog, start(request, memory), request)

    return begin


class StoredSearch:
    """A search that a catalog keeps when it ends.

    Parameters
    ----------
    catalog
        Where it is kept.
    job
        The search.
    request
        Of it.
    """

    def __init__(self, catalog: Catalog, job: Any, request: Mapping[str, Any]) -> None:
        self._catalog, self._job, self._request = catalog, job, dict(request)

    def __iter__(self) -> Iterator[Json]:
        """Yield what it finds."""
        known: dict[str, Json] = {}
        front: Json = {}
        try:
            for event in self._job:
                if "candidate" in event:
                    known[event["candidate"]["key"]] = event["candidate"]
                front = event.get("front", front)
                yield event
        finally:
            self._store(known, front)

    def cancel(self) -> None:
        """End it now; what it has found is stored."""
        self._job.cancel()

    def _store(self, known: Mapping[str, Json], front: Json) -> None:
        from formulations.campaigns.catalog import Proposal, Proposals  # noqa: PLC0415  a database

        networks = {key: known[key] for key in front.get("order", ())}
        if not networks:
            return
        study = Proposal(request=self._request, networks=networks, front=front)
        try:
            Proposals(self._catalog).keep(study)
        except CclError as error:
            log.warning("a search for networks is not kept: %s", error)


def held(key: str, request: Mapping[str, Any], catalog: Catalog | None) -> Json:
    """Return what the page holds of a search: its key, and where it is found again."""
    if catalog is None:
        return {"key": sealed(key)}
    from formulations.campaigns.catalog import digest_of  # noqa: PLC0415  a database

    return {"key": sealed(key), "study": digest_of(request)}


def reopened(studies: Studies, catalog: Catalog, study: Proposal) -> Json:
    """Take a stored search among those of pages; return what the page holds of it."""
    events: list[Json] = [{"candidate": each} for each in study.networks.values()]
    events += [{"front": study.front}, {"done": True}]
    seconds = float(study.front.get("seconds", 0.0))
    key = studies.adopt(events, question=study.request, seconds=seconds)
    return held(key, study.request, catalog)


def found_again(studies: Studies, catalog: Catalog | None, job: Json) -> Json | None:
    """Return what the page holds of its search once it is taken from the catalog, None without one.

    Parameters
    ----------
    studies
        Of all pages.
    catalog
        Where searches are kept, if there is one.
    job
        What the page holds of a search that is not there any more.
    """
    if catalog is None or "study" not in job:
        return None
    from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  a database

    try:
        study = Proposals(catalog).load(str(job["study"]))
    except CclError as error:
        log.warning("a search for networks is not found again: %s", error)
        return None
    return None if study is None else reopened(studies, catalog, study)


def prices_of(catalog: Catalog | None, stands: Standing) -> dict[str, float]:
    """Return the prices that were typed when a search was last looked at."""
    if catalog is None:
        return {}
    from formulations.campaigns.catalog import Proposals  # noqa: PLC0415  a database

    try:
        study = Proposals(catalog).view(stands.found.question)
    except CclError:
        return {}
    return study.prices


def remember(
    catalog: Catalog, stands: Standing, *, axes: tuple[str, str], prices: Mapping[str, float]
) -> None:
    """Note how a search is looked at, with the prices that are not the usual ones."""
    from formulations.campaigns.catalog import Proposals, View  # noqa: PLC0415  a database

    own = stands.own(prices)
    try:
        Proposals(catalog).look(stands.found.question, View(axes, own))
    except CclError as error:
        log.warning("how a search is looked at is not kept: %s", error)
