"""Searches for networks in a catalog: one of each request, with how it was looked at."""

from __future__ import annotations

import sqlite3

import pytest

from ccl.errors import CatalogError
from formulations.campaigns.catalog import Catalog, Proposal, Proposals, View
from formulations.campaigns.catalog.relabelling import squeezed

REQUEST = {"gpus": 16, "ports": 4, "bandwidth": 50.0, "host": None, "radix": 0, "seconds": 5.0}


def study(*names, request=REQUEST, **more):
    networks = {f"n{9 - place}": {"name": name} for place, name in enumerate(names)}
    front = {"order": list(networks), "seconds": 4.5}
    return Proposal(request=request, networks=networks, front=front, **more)


@pytest.fixture
def kept(tmp_path):
    """An empty catalog."""
    return Proposals(Catalog(tmp_path / "catalog.sqlite"))


def test_a_study_is_found_by_number_and_by_request_as_it_was(kept):
    """Networks stay in their order, the best first, which is not that of their keys."""
    kept.keep(study("Rewired 16", "Torus 4x4"))
    (entry,) = kept.entries()
    assert (entry.best, entry.networks, entry.seconds) == ("Rewired 16", 2, 4.5)
    assert entry.title == "16 GPUs with 4 ports of 50 GB/s"
    assert kept.load(entry.number) == kept.load(entry.digest) == study("Rewired 16", "Torus 4x4")
    assert list(kept.load(entry.number).networks) == ["n9", "n8"]


def test_the_last_search_of_a_request_counts_and_how_it_was_looked_at_stays(kept):
    view = View(("mix", "hops"), {"cable": 3.5})
    kept.keep(study("Torus 4x4"))
    assert kept.look(REQUEST, view)
    assert not kept.look(REQUEST, view)
    kept.keep(study("Rewired 16", "Torus 4x4"))
    kept.keep(study("Ring of 16", request={**REQUEST, "ports": 2}))
    assert not kept.look({**REQUEST, "ports": 3}, view)
    assert [each.best for each in kept.entries()] == ["Rewired 16", "Ring of 16"]
    assert kept.load(kept.entries()[0].number).view == kept.view(REQUEST) == view
    assert kept.view({**REQUEST, "ports": 2}) == View()


def test_studies_are_removed_and_plans_are_not_counted_with_them(kept):
    kept.keep(study("Torus 4x4"))
    assert kept.catalog.count() == 0
    assert kept.catalog.faults() == ()
    assert kept.forget([1, 7]) == 1
    assert kept.entries() == ()
    assert kept.load(1) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zlib",
        squeezed({"request": REQUEST, "networks": {}, "front": {"order": ["n9"]}}),
        squeezed({"request": REQUEST, "networks": {}, "front": {}}),
        squeezed({"request": REQUEST, "networks": []}),
    ],
)
def test_a_damaged_study_is_refused_in_one_sentence(kept, content):
    """Cut off, no archive, a network that is named and not there, no order, no front."""
    kept.keep(study("Torus 4x4"))
    with sqlite3.connect(kept.catalog.path) as connection:
        connection.execute("UPDATE proposals SET content = ?", (content,))
    with pytest.raises(CatalogError, match=r"study 1 of .* is damaged: .*; remove it"):
        kept.load(1)


def test_a_catalog_without_the_table_gets_it(kept):
    """A file of the version before keeps all that it has."""
    path = kept.catalog.path
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE proposals")
        connection.execute("PRAGMA user_version = 2")
    again = Proposals(Catalog(path))
    again.keep(study("Torus 4x4"))
    assert len(again.entries()) == 1
