"""The Propose view: what the fields ask, what a search tells, prices, the plot, files."""

from __future__ import annotations

import csv
import io
import json
from contextlib import nullcontext
from dataclasses import replace

import pytest

from ccl import text
from ccl.errors import CclError, SolveError
from designer.studies import Found, Studies
from designer.views.propose import callbacks, page
from designer.views.propose.running import (
    FIELDS,
    USES,
    Standing,
    as_typed,
    field_of,
    read_question,
    standing,
)
from designer.views.propose.stored import remember, storing
from designer.views.propose.worker import search
from formulations.campaigns.catalog import Catalog, Proposals
from formulations.proposals.request import KINDS
from widgets.charts.labels import Label
from widgets.charts.proposals import RESPECTS, Dot, labels, proposals_figure

USUAL = {name: each.value for name, each in FIELDS.items()}
MIX = {kind: (size, times) for kind, (_, size, times) in USES.items()}


def question(**given):
    return read_question({**USUAL, **given}, host="none", one_way=False, mix=MIX)


@pytest.fixture(scope="module")
def stands() -> Standing:
    """A search of 16 GPUs with 4 ports each, in this process."""
    asked = question(gpus=16, seconds=10)
    events = tuple(search(asked))
    found = Found(events, asked, running=False, cancelled=False, waiting=0, seconds=3.0)
    known = {e["candidate"]["key"]: e["candidate"] for e in events if "candidate" in e}
    front = found.last("front")
    return Standing(found, {each: known[each] for each in front["order"]}, front)


def test_fields_as_they_are_make_a_question():
    asked = question()
    assert (asked["gpus"], asked["ports"], asked["radix"], asked["host"]) == (64, 4, 0, None)
    assert [each["collective"] for each in asked["mix"]] == list(USES)


def test_a_request_goes_back_into_the_fields():
    asked = question(gpus=32, radix=16, bandwidth="25 GB/s")
    values, mix = as_typed(asked)
    assert read_question(values, host="none", one_way=False, mix=mix) == asked
    assert as_typed({**asked, "mix": [{"collective": "all-gather", "size": 2e6}]})[1] == {
        **{kind: (size, 0) for kind, (_, size, _) in USES.items()},
        "all-gather": ("2 MB", 1),
    }


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"gpus": 2}, "gpus", "4"),
        ({"ports": 1}, "radix", "need switches"),
        ({"bandwidth": "fast"}, "bandwidth", "bandwidth"),
        ({"seconds": 0}, "seconds", "time to search"),
        ({"gpus": 12, "radix": 8, "host": "dgx-h100"}, "host", "no whole hosts dgx-h100 of 8"),
    ],
)
def test_what_is_refused_is_said_beside_its_field(given, field, words):
    values = {**USUAL, **given}
    with pytest.raises(CclError, match=words) as refused:
        read_question(values, host=values.pop("host", "none"), one_way=False, mix=MIX)
    assert field_of(refused.value) == field


def test_nothing_that_it_is_for_is_refused():
    none = {kind: (size, 0) for kind, (size, _) in MIX.items()}
    with pytest.raises(CclError, match="a mix is empty"):
        read_question(USUAL, host="none", one_way=False, mix=none)


def test_a_search_tells_networks_that_are_drawings_and_none_below_its_bound(stands):
    """Each has a place for all devices, a bill, and no time below what no network can beat."""
    assert len(stands.networks) >= 2
    assert stands.found.last("done")
    for each in stands.networks.values():
        names = {device["name"] for device in each["drawing"]["topology"]["devices"]}
        assert names == set(each["drawing"]["positions"])
        assert each["parts"]
        assert each["values"]["dollars"] > 0
        for axis, bound in stands.front["bounds"].items():
            assert bound is None or each["values"][axis] >= bound * (1 - 1e-9)


def test_the_best_are_those_that_none_beats_and_prices_move_them(stands):
    best = stands.best("dollars", "mix")
    places = {
        key: (e["values"]["dollars"], e["values"]["mix"]) for key, e in stands.networks.items()
    }
    for key in best:
        money, time = places[key]
        assert not any(other < money and slow < time for other, slow in places.values())
    free = stands.priced(dict.fromkeys(stands.parts, 0.0))
    assert {each["values"]["dollars"] for each in free.networks.values()} == {0.0}
    usual = {name: part["dollars"][1] for name, part in stands.parts.items()}
    same = stands.priced(usual)
    for key, each in same.networks.items():
        low, high = each["spans"]["dollars"]
        assert low < each["values"]["dollars"] < high
        assert each["values"]["dollars"] == pytest.approx(stands.networks[key]["values"]["dollars"])


def test_cards_and_the_plot_show_every_network_that_counts(stands):
    axes = ("dollars", "mix")
    dots = callbacks.dots_of(stands, axes, "")
    figure = proposals_figure(dots, axes=axes, bounds=(None, stands.front["bounds"]["mix"]))
    drawn = [key for trace in figure.data for key in trace.customdata or ()]
    assert sorted(drawn) == sorted(stands.networks)
    words = str(page.cards(stands, best=stands.best(*axes), ticked=(), chosen=""))
    assert all(stands.networks[key]["name"] in words for key in stands.best(*axes))
    first, second, *_ = stands.networks
    table = str(page.beside(stands, [first, second]))
    assert RESPECTS["all-to-all"].title in table
    assert page.beside(stands, [first]) is None


def test_names_in_the_plot_that_would_meet_are_left_out():
    """Networks alike in both respects have room for few names; the chosen one is first."""
    close = [
        Dot(
            f"k{i}", "Rewired 64 of degree 4, cheaper cables", "rewired", (1.0 + i / 1e3, 1.0), True
        )
        for i in range(40)
    ]
    far = Dot("far", "Torus 8", "torus", (9.0, 9.0), best=True)
    spots = labels([*close[:39], replace(close[39], chosen=True), far], (None, None))
    assert {"far", "k39"} <= set(spots)
    assert len(spots) < 30
    one = Dot("a", "Torus 8", "torus", (2.0, 2.0), best=True)
    usual = labels([one, far], (None, None))["a"]
    beside = {"a": usual, "far": Label("Torus 8", "bottom left")}
    assert labels([one, far], (None, 1.9)) == beside
    assert labels([replace(one, best=False)], (None, None)) == {}


CROWDED = (
    ("Rewired 64 of degree 4", 54587.2, 7824.7),
    ("Rewired 64 of degree 4, cheaper cables", 42097.6, 7940.6),
    ("Torus 8×8", 35852.8, 9476.0),
    ("Torus 32, 2 copies each", 27526.4, 15196.0),
    ("Torus 64, links × 2", 23363.2, 26516.0),
)
"""The front of 64 GPUs of 4 ports: dollars, and µs of the mix."""


@pytest.mark.parametrize("room", [(283.0, 178.0), (283.0, 208.0), (337.0, 334.0), (613.0, 586.0)])
def test_every_network_of_a_usual_front_has_its_name(room):
    """On a phone, a small and a large page: beside its mark, else led to it."""
    dots = [Dot(name, name, name, place, best=True) for name, *place in CROWDED]
    dots.append(Dot("lattice", "lattice", "lattice", (50600.0, 8950.0), best=False))
    bounds = (None, 7470.0)
    found = labels(dots, bounds, room)
    assert {key: each.text.replace("<br>", " ") for key, each in found.items()} == {
        name: name for name, *_ in CROWDED
    }
    ends = {key: each.end for key, each in found.items() if each.end}
    # A point beyond the axes is not drawn, nor what is written there.
    assert all(0 < across < 54587.2 * 1.08 and up > bounds[1] for across, up in ends.values())
    assert not (room[0] > 600 and any("Torus" in key for key in ends))
    figure = proposals_figure(dots, axes=("dollars", "mix"), bounds=bounds, size=room)
    written = [text for trace in figure.data for text in trace.text or () if text]
    assert sorted(written) == sorted(each.text for each in found.values())
    led = [trace for trace in figure.data if trace.mode == "lines+text"]
    assert {trace.legendgroup: (trace.x[1], trace.y[1]) for trace in led} == ends


def test_the_page_says_which_sizes_its_times_are_for(stands):
    """Of the mix as it was asked, and that rows of one collective are per GB instead."""
    uses = stands.front["mix"]
    assert {kind for kind, _, _ in uses} <= {*USES}
    words = str(page.sizes(stands))
    for kind, size, times in uses:
        named = "short messages" if kind == "latency" else kind
        assert f"{times:g} × {named} of {text.size(size)}" in words
    assert all("per GB" in RESPECTS[kind].title for kind in KINDS)
    assert "per GB" in words
    before = replace(stands, front={k: v for k, v in stands.front.items() if k != "mix"})
    assert page.sizes(before) is None


def test_files_have_every_network(stands):
    rows = list(csv.DictReader(io.StringIO(callbacks.study_csv(stands))))
    assert [row["network"] for row in rows] == [e["name"] for e in stands.networks.values()]
    told = json.loads(callbacks.study_json(stands))
    assert told["wanted"]["gpus"] == 16
    assert len(told["networks"]) == len(stands.networks)


class Search:
    """A search that tells what it is given, and then breaks if it is told to."""

    def __init__(self, events, *, breaks=False):
        self.events, self.breaks = events, breaks

    def __iter__(self):
        yield from self.events
        if self.breaks:
            raise SolveError("the study's process ended")

    def cancel(self):
        """End it."""


@pytest.mark.parametrize("breaks", [False, True])
def test_whatever_ends_a_search_what_it_found_is_kept_and_opens_as_it_was(stands, tmp_path, breaks):
    """How it is looked at is noted; only prices that were typed are."""
    kept = Proposals(Catalog(tmp_path / "catalog.sqlite"))
    job = storing(lambda *_: Search(stands.found.events[:-1], breaks=breaks), kept.catalog)
    with pytest.raises(SolveError) if breaks else nullcontext():
        list(job(stands.found.question))
    usual = {name: part["dollars"][1] for name, part in stands.parts.items()}
    first = min(usual)
    remember(kept.catalog, stands, axes=("mix", "hops"), prices={**usual, first: 7.0})
    (entry,) = kept.entries()
    study = kept.load(entry.number)
    assert (study.view.axes, study.view.prices) == (("mix", "hops"), {first: 7.0})
    studies = Studies(lambda *_: None)
    events = [{"candidate": each} for each in study.networks.values()]
    key = studies.adopt([*events, {"front": study.front}], question=study.request, seconds=3.5)
    again = standing(studies, key)
    studies.close()
    assert (again.networks, again.front) == (stands.networks, stands.front)
    assert (again.found.question, again.found.seconds) == (stands.found.question, 3.5)
    assert not again.found.running


def test_a_search_that_found_nothing_is_not_kept(tmp_path):
    kept = Proposals(Catalog(tmp_path / "catalog.sqlite"))
    list(storing(lambda *_: Search([{"error": "no"}, {"done": True}]), kept.catalog)(question()))
    assert kept.entries() == ()
