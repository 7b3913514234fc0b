"""Losses, stragglers and budgets of the What-if view: what is told, how it runs, the cards."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ccl.collective import all_gather
from ccl.errors import ProblemError, SolveError
from ccl.problem import Problem
from ccl.serialization.topoloom import problem_to_json, topology_from_json
from designer.app import STUDIES
from designer.studies import Found, Studies, StudyJob
from designer.views.draw.files import drawing_of
from designer.views.whatif import answering, study_callbacks, study_cards
from designer.views.whatif.knobs import knobs_of
from designer.views.whatif.study_callbacks import degraded
from designer.views.whatif.worker import study
from formulations.analyses.best_rate import optimum
from formulations.analyses.expansion.costs import read_costs
from gallery import open_cluster
from widgets.charts.rates import front_figure

EDR = "InfiniBand EDR@12.5"


def asked(name, **more):
    cluster = open_cluster(name)
    problem = Problem(cluster, all_gather(len(cluster.ranks), 1e6))
    return {"problems": [problem_to_json(problem)], **more}


def found(request):
    """Return what a study tells, in this process."""
    return Found(tuple(study(request)), None, running=False, cancelled=False, waiting=0, seconds=1)


@pytest.fixture(scope="module")
def losses():
    """Every single loss of two NDv2 hosts."""
    return found(asked("ndv2:hosts=2", study="failures"))


def test_a_network_link_that_is_lost_ends_it_and_is_the_worst(losses):
    """There is one each way, so nothing comes out of one host; a ring's link costs a share."""
    worst = study_cards.rows_of(losses)[0]
    assert (worst["kind"], losses.last("done"), losses.last("of")) == (
        "link", True, len(study_cards.rows_of(losses)),
    )  # fmt: skip
    assert worst["algbw"] == 0
    assert "The worst case" in losses.last("words")
    shown = str(study_cards.table("failures", losses, study_cards.identity(worst)))
    assert "'aria-pressed': 'true'" in shown or "aria-pressed='true'" in shown
    assert f"'whatif-open': '{study_cards.identity(worst)}'" in shown


def test_the_cluster_of_a_row_is_made_again_from_it(losses):
    """What is opened runs at the rate that its row tells."""
    cluster = open_cluster("ndv2:hosts=2")
    for kind in ("link", "gpu"):
        row = next(
            each for each in study_cards.rows_of(losses) if each["kind"] == kind and each["algbw"]
        )
        left = degraded(cluster, row)
        again = Problem(left, all_gather(len(left.ranks), 1e6))
        assert optimum(again).algbw == pytest.approx(row["algbw"])


def test_a_loss_that_leaves_fewer_gpus_and_a_higher_rate_is_no_gain(losses):
    row = {**study_cards.rows_of(losses)[-1], "ends": False, "cut_off": [], "lost": -0.07}
    told = Found(({"row": row},), None, running=False, cancelled=False, waiting=0, seconds=1)
    shown = str(study_cards.table("failures", told, ""))
    assert "'not comparable'" in shown
    assert study_cards.FEWER in shown
    assert "gains" not in shown


def test_what_is_lost_is_marked_and_what_is_like_it_in_pale(losses):
    row = next(
        each for each in study_cards.rows_of(losses) if each["kind"] == "gpu" and each["alike"] > 1
    )
    drawn = study_cards.marks("failures", row, {})
    first, others = drawn["groups"]
    assert (first["devices"], first["badge"]) == (row["names"], "×")
    assert len(others["devices"]) == row["alike"] - 1
    host = {"kind": "host", "names": ["h0"], "members": [["h0"]], "words": "host h0"}
    [one] = study_cards.marks("failures", host, {"a": "h0", "b": "h1"})["groups"]
    assert one["devices"] == ["a"]


def test_a_straggler_costs_what_its_slowness_does():
    """The network takes twice as long for each byte, and all that crosses is on it: half."""
    told = found(asked("ndv2:hosts=2", study="stragglers", alpha=1.0, beta=2.0))
    worst = study_cards.rows_of(told)[0]
    assert worst["lost"] == pytest.approx(0.5)
    slow = degraded(open_cluster("ndv2:hosts=2"), worst, alpha=1.0, beta=2.0)
    assert optimum(Problem(slow, all_gather(16, 1e6))).algbw == pytest.approx(12.5)


def test_the_cheapest_way_to_be_half_as_fast_again_is_more_network():
    """6.25 GB/s more on the two links between the hosts; with the ring dear nothing changes."""
    cluster = open_cluster("ndv2:hosts=2")
    knobs = knobs_of(cluster)
    usual = {each.key: 1 for each in knobs}
    costs = study_cards.costs_of(knobs, cluster, links=usual, devices={"gpu": 0})
    assert costs["currency"] == "GB/s"
    told = found(asked("ndv2:hosts=2", study="budget", costs=costs, target="1.5x"))
    upgrade = told.last("upgrade")
    assert [each["words"] for each in upgrade["bought"]] == ["InfiniBand EDR at 12.5 GB/s"]
    assert upgrade["bought"][0]["after"] == pytest.approx(18.75)
    better = Problem(topology_from_json(upgrade["topology"]), all_gather(16, 1e6))
    assert optimum(better).algbw == pytest.approx(37.5)
    shown = str(study_cards.bought(told))
    assert "12.5 → 18.8 GB/s" in shown
    assert "(1 per GB/s)" in shown
    front = told.last("front")
    figure = front_figure(
        front["points"], kind=front["kind"], chosen=(upgrade["cost"], upgrade["factor"])
    )
    assert next(iter(figure.data[0].x)) == 0


def test_what_has_no_cost_is_not_for_sale():
    cluster = open_cluster("ndv2:hosts=2")
    knobs = knobs_of(cluster)
    costs = study_cards.costs_of(
        knobs, cluster, links={EDR: None, knobs[0].key: 3.0}, devices={"gpu": 10.0}
    )
    assert costs == {
        "currency": "",
        "links": [{"cost": 3.0, "medium": "NVLink 2", "bandwidth": 50.0}],
        "devices": {"gpu": 10.0},
    }
    with pytest.raises(ProblemError):
        read_costs(study_cards.costs_of(knobs, cluster, links={}, devices={}))
    refused = found(asked("ndv2:hosts=2", study="budget", costs=costs, target="1.5x"))
    assert refused.last("error")
    assert "ds-bad" in str(study_cards.status(refused, doing="buys"))


class Slow:
    """A study of two events whose second never comes."""

    def __init__(self, *_given):
        self.ended = False

    def __iter__(self):
        yield {"of": 2, "algbw": 1.0}
        while not self.ended:
            time.sleep(0.01)

    def cancel(self):
        self.ended = True


def test_a_study_that_is_stopped_keeps_what_it_has_found():
    studies = Studies(Slow)
    key = studies.start({}, question="asked")
    while not (now := studies.found(key)).events:
        time.sleep(0.01)
    assert (now.running, now.question, now.last("of")) == (True, "asked", 2)
    assert "0 of 2" in str(study_cards.status(now, doing=""))
    studies.cancel(key)
    while studies.found(key).running:
        time.sleep(0.01)
    assert "stopped: 0 of 2" in str(study_cards.status(studies.found(key), doing=""))
    assert studies.found("nothing") is None
    studies.close()


def test_what_nobody_asks_about_is_ended():
    studies = Studies(Slow, abandoned=0.05)
    key = studies.start({}, question=None)
    time.sleep(0.1)
    studies.sweep()
    while studies.found(key).running:
        time.sleep(0.01)
    assert studies.found(key).cancelled
    studies.close()


def test_a_study_in_a_process_of_its_own_tells_the_same_and_its_death_is_told(losses):
    request = asked("ndv2:hosts=2", study="failures")
    assert list(StudyJob(STUDIES, request))[-2] == {"words": losses.last("words")}
    job = StudyJob(STUDIES, request)
    job._child.kill()
    with pytest.raises(SolveError, match="study's process"):
        list(job)


class _Busy:
    """Studies of which no more may wait."""

    def start(self, *_: object, **__: object) -> str:
        raise ProblemError("3 studies wait already; try again when one has ended")


@pytest.mark.parametrize(
    ("asks", "field", "why"),
    [
        ({"target": ""}, "target", "What is to be reached is empty"),
        ({"target": "fast"}, "target", "'fast' is not a bandwidth"),
        ({"collectives": ["custom"]}, "collectives", "custom"),
        ({}, "status", "3 studies wait already"),
    ],
)
def test_a_study_that_is_refused_says_so_beside_its_field(asks, field, why, monkeypatch):
    monkeypatch.setattr(study_callbacks, "visitor", lambda: "somebody")
    busy: Any = _Busy()
    drawing = drawing_of(open_cluster("ring"))
    request = {"collective": "all-gather", "size": "1MB"}
    stands = {
        "question": {"values": {}},
        "drawing": drawing,
        "request": request,
        "before": answering.today(drawing, request),
    }
    given = {"links": {}, "devices": {}, "target": "1.5x", "collectives": None, **asks}
    said = study_callbacks._begun(busy, "budget", stands, given)
    assert "job" not in said
    assert why in str(said[field])
