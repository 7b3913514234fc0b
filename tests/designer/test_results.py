"""What the panels say of a result, its bounds and its links."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from ccl import text
from ccl.bound import Bound, Cut
from ccl.result import Status, Stop
from ccl.serialization.topoloom import result_from_json, result_to_json
from ccl.topology import device
from designer.jobs import JobState
from designer.views.solve import results, solve_card
from designer.views.solve.assess import answer, views_of
from widgets.words import BOUND_LABELS


def texts(component):
    """Return all texts of a component, joined."""
    return " ".join(_texts(json.loads(json.dumps(component, default=lambda c: c.to_plotly_json()))))


def _texts(part):
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for each in part:
            yield from _texts(each)
    elif isinstance(part, dict):
        yield from _texts(part.get("props", {}).get("children"))


def test_a_summary_has_the_metrics_of_the_result(result):
    summary = results.summary_of(result)
    assert summary["makespan"] == result.makespan
    assert summary["algbw"] == pytest.approx(4e6 / result.makespan * 1e-3)
    assert summary["optimal"] is (result.gap <= 1e-6)
    assert summary["verdict"] == result.verdict
    assert 0 < summary["busiest"] <= 1
    json.dumps(summary)


def test_the_panel_of_a_fresh_schedule_states_verdict_and_numbers(result):
    summary = results.summary_of(result)
    words = texts(results.schedule_panel(summary))
    assert "makespan" in words
    assert "above the bound of any plan" in words
    assert "Out of date" not in words


def test_who_found_the_plan_and_what_proves_it_are_told_also_from_a_file(result):
    made = replace(result, formulation="auto", found_by="list")
    read = result_from_json(result_to_json(made))
    assert read.found_by == "list"
    words = texts(results.schedule_panel(results.summary_of(read)))
    assert "Found by List scheduling in continuous time" in re.sub(r"\s+", " ", words)
    for word, proof in (("optimal", read.bound), ("whole", read.whole_bound)):
        proved = {**results.summary_of(read), "optimal": False, "whole": False, word: True}
        label = BOUND_LABELS[proof.kind]
        told = re.sub(r"\s+", " ", texts(results.schedule_panel(proved)))
        assert f"Proved by {label[0].lower()}{label[1:]}" in told
        assert text.duration(proof.makespan) in told


def test_the_panel_says_among_which_plans_it_is_proved(result):
    """One shard to each neighbour takes 20.5 µs, and two of three come round: 41 µs, unless cut."""
    assert result.status is Status.WHOLE
    words = texts(results.schedule_panel(results.summary_of(result)))
    assert "Optimal for whole chunks of 1 MB: the makespan meets a lower bound." in words
    assert "A plan that cuts them may be faster." in words

    lower = [replace(each, makespan=each.makespan * 0.97) for each in result.bounds]
    near = replace(result, bounds=tuple(replace(each, whole_chunks=False) for each in lower))
    told = results.summary_of(replace(near, stop=Stop.TIME_LIMIT))
    words = texts(results.schedule_panel(told))
    assert "Verified and within 3.09 % of the bound" in words


def test_a_stale_schedule_says_so(result):
    words = texts(results.schedule_panel(results.summary_of(result), stale="the drawing"))
    assert "Out of date: the drawing has changed" in words


def test_no_schedule_says_what_to_do():
    assert "then solve" in texts(results.schedule_panel(None))
    assert "first schedule" in texts(results.schedule_panel(None, solving=True))


def test_the_tightest_cut_is_shown_until_another_is_chosen(result):
    bounds = results.bounds_to_json(result.bounds, result.problem.topology)
    drawable = [i for i, each in enumerate(bounds) if each["inside"]]
    assert results.cut_on_canvas(bounds, "auto") == drawable[0]
    assert results.cut_on_canvas(bounds, drawable[-1]) == drawable[-1]
    assert results.cut_on_canvas(bounds, None) is None
    assert results.cut_on_canvas(bounds, 99) is None


def test_a_cut_made_of_whole_hosts_is_told_by_their_names(ring):
    cut = Cut(("gpu0", "gpu1"), (("gpu1", "gpu2"), ("gpu0", "gpu3")), 100.0)
    (told,) = results.bounds_to_json((Bound(30.0, "cut", cut, ""),), ring)
    assert told["where"] == "100 GB/s out of h0"


def test_a_cut_is_told_from_the_side_that_the_canvas_outlines(ring):
    wide = replace(ring, devices=(*ring.devices, device("switch", "rail")))
    cut = Cut(("gpu2", "gpu3", "rail"), (("gpu2", "gpu1"), ("gpu3", "gpu0")), 100.0)
    (told,) = results.bounds_to_json((Bound(30.0, "cut", cut, ""),), wide)
    assert told["where"] == "100 GB/s into h0"


def test_a_cut_around_all_but_one_is_told_as_its_ingress(ring):
    cut = Cut(("gpu0", "gpu1", "gpu2"), (("gpu0", "gpu3"), ("gpu2", "gpu3")), 100.0)
    (told,) = results.bounds_to_json((Bound(30.0, "ejection", cut, ""),), ring)
    assert told["where"] == "100 GB/s into gpu3"
    drawn = results.cut_of(told, [told])
    assert drawn["inside"] == ["gpu0", "gpu1", "gpu2"]
    assert "lower bound 30 µs" in drawn["label"]


def test_a_cut_that_is_not_the_bound_says_so(ring):
    cut = Cut(("gpu0", "gpu1"), (("gpu1", "gpu2"), ("gpu0", "gpu3")), 100.0)
    bounds = (Bound(40.0, "flow", None, "prices"), Bound(30.0, "cut", cut, ""))
    told = results.bounds_to_json(bounds, ring)
    assert results.cut_of(told[1], told)["label"] == "Cut · 100 GB/s · 30 µs of the bound of 40 µs"
    whole = {**told[0], "whole_chunks": True}
    assert "lower bound 30 µs" in results.cut_of(told[1], [whole, told[1]])["label"]


def test_a_bound_without_a_witness_is_no_button(result):
    solver = [
        {
            "makespan": 5.0,
            "kind": "solver",
            "where": "the model on its grid",
            "inside": None,
            "links": None,
            "bandwidth": None,
            "path": None,
            "whole_chunks": False,
        }
    ]
    panel = results.bounds_panel(solver, makespan=10.0, chosen=None)
    assert type(panel.children[0]).__name__ == "Div"
    assert "the model on its grid" in texts(panel)


def state(best, *, running, found, cancelled=False):
    return JobState(
        running=running,
        seconds=1.0,
        points=(),
        clock=1.0,
        message="",
        found=found,
        best=best,
        cancelled=cancelled,
    )


def test_a_better_plan_is_shown_while_the_solve_goes_on(result):
    told = answer(state(result, running=True, found=2), {"size": "4MB"}, seen=1)
    assert told.scene is not None
    assert told.scene["makespan"] == result.makespan
    assert told.summary is not None
    assert "goes on" in told.summary["stop"]
    assert told.document is None
    assert told.job("key") == {"key": "key", "found": 2}


def test_nothing_new_changes_nothing(result):
    told = answer(state(result, running=True, found=1), None, seen=1)
    assert (told.news, told.scene, told.summary) == (False, None, None)


def test_the_end_brings_the_document_but_does_not_play_the_same_plan_again(result):
    told = answer(state(result, running=False, found=1), None, seen=1)
    assert told.scene is None
    assert told.document is not None
    assert told.summary is not None
    assert told.job("key") is None


def test_a_stop_is_told_with_what_was_kept(result):
    stopped = replace(result, stop=Stop.CANCELLED)
    told = answer(state(stopped, running=False, found=1, cancelled=True), None, seen=1)
    assert "best schedule is kept" in str(told.summary)
    assert told.remark is None
    assert "before the first" in str(
        answer(state(None, running=False, found=0, cancelled=True), None, seen=0).remark
    )


def test_epochs_are_those_of_the_player(result):
    told = views_of(result, None)
    assert told["summary"]["epochs"] == told["scene"]["epochs"]


def test_the_progress_line_tells_time_and_message(result):
    running = JobState(True, 3.0, (), 2.8, "trying 9 epochs", 0, None, cancelled=False)
    assert "trying 9 epochs" in texts(solve_card.running(running, limit=60))
    assert "No schedule yet" in texts(solve_card.running(running, limit=60))
    words = texts(solve_card.running(replace(running, found=3), limit=None))
    assert "Plan 3, still solving" in words
    assert "Stopped with 2 schedules" in texts(
        solve_card.running(state(None, running=False, found=2, cancelled=True), limit=None)
    )


def bound_of(makespan, *, whole=False):
    return {"makespan": makespan, "whole_chunks": whole}


def test_a_fresh_schedule_stands_beside_the_largest_bound_that_is_known():
    """Of 46.5 us the gap is that to 42.7, which the drawing's bounds prove, not to 41.3."""
    verdict = {"verdict": "feasible", "optimal": False, "whole": False, "throughput": False}
    own = [bound_of(41.3), bound_of(46.0, whole=True)]
    fresh = {"makespan": 46.5, "gap": 46.5 / 41.3 - 1, "bounds": own, **verdict}
    known = {"bounds": [bound_of(42.7), bound_of(41.3), bound_of(46.0, whole=True)]}

    shown = results.beside(fresh, known)

    assert shown["gap"] == pytest.approx(46.5 / 42.7 - 1)
    assert shown["verdict"] == "within 8.9 % of the bound"
    assert [each["makespan"] for each in results.bounds_summary(known, fresh)] == [42.7, 41.3, 46.0]
    assert results.beside({**fresh, "makespan": 43.0}, known)["verdict"].startswith(
        "within 0.703 %"
    )
    assert results.beside(fresh, {"bounds": [bound_of(41.0)]}) is fresh
    assert results.beside(fresh, {"bounds": [bound_of(99.0)]}) is fresh  # of a question before


def test_without_a_fresh_schedule_the_bounds_are_those_of_the_drawing():
    known = {"bounds": [bound_of(1.0)]}
    assert results.bounds_summary(known, None) == known["bounds"]
    assert results.bounds_summary(None, None) == ()


def test_the_bound_of_whole_chunks_stands_second_and_by_its_name(result):
    """The bound of record holds for every plan."""
    told = results.summary_of(result)
    whole = {**told["bounds"][0], "whole_chunks": True, "makespan": 40.0}
    every = {**told["bounds"][0], "whole_chunks": False, "makespan": 30.0}
    open_still = {"whole": False, "whole_gap": 0.025, "chunk_size": 1e6, "pieces": 8}
    panel = results.schedule_panel({**told, **open_still, "bounds": [every, whole]})
    words = re.sub(r"\s+", " ", texts(panel))
    assert "8 pieces per shard" in words
    assert "For whole chunks of 1 MB: ≥ 40 µs , 2.5 % above." in words
    listed = texts(results.bounds_panel([every, whole], makespan=41.0, chosen=0))
    places = [listed.index(each) for each in ("30 µs", "Only for plans that send these", "40 µs")]
    assert places == sorted(places)


def test_of_bounds_of_one_name_the_largest_is_listed_and_the_rest_folded(result):
    """One that is on the canvas stays in sight."""
    told = results.summary_of(result)["bounds"][0]
    given = [
        {**told, "kind": "group", "makespan": each, "inside": None} for each in (9.0, 8.0, 7.0)
    ]
    other = {**told, "kind": "cut", "makespan": 6.0}
    panel = results.bounds_panel([*given, other], makespan=9.0, chosen=None)
    *listed, fold = panel.children
    assert ["9 µs" in texts(listed[0]), "6 µs" in texts(listed[1]), len(listed)] == [True, True, 2]
    assert "2 smaller bounds of these kinds" in texts(fold)
    assert "8 µs" in texts(fold)
    panel = results.bounds_panel([*given, other], makespan=9.0, chosen=2)
    assert len(panel.children) == 4


def test_bounds_that_hold_for_every_plan_come_first(result):
    whole = replace(result.bounds[0], whole_chunks=True, makespan=99.0)
    told = results.bounds_to_json((whole, *result.bounds), result.problem.topology)
    flags = [each["whole_chunks"] for each in told]
    assert flags == sorted(flags)
    assert flags[-1]
