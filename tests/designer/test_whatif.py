"""The What-if view without a page: what can be moved, what follows, and what is said of it."""

from __future__ import annotations

import time

import pytest

from ccl.errors import ProblemError
from ccl.serialization.topoloom import topology_from_json
from designer.views.draw.files import drawing_of
from designer.views.whatif import answering, page
from designer.views.whatif.answering import curves, first_curves, limits_answered
from designer.views.whatif.form import form
from designer.views.whatif.knobs import Change, changed, knobs_of, origin_of, read_origin
from designer.views.whatif.page import limits
from gallery import catalog, open_cluster
from widgets.charts.rates import rates_figure

ASKED = {"collective": "all-gather", "size": "1MB", "chunks": 1}
EDR = "InfiniBand EDR@12.5"


def opened(name):
    """Return a drawing and what is known of it as it stands."""
    drawing = drawing_of(open_cluster(name))
    return drawing, answering.today(drawing, ASKED)


def test_classes_of_links_are_the_knobs_of_a_cluster():
    """NDv2: rings of 50 and of 25 GB/s in each host, and one network link each way."""
    knobs = knobs_of(open_cluster("ndv2:hosts=2"))
    assert [(each.key, each.many) for each in knobs] == [
        ("NVLink 2@50", "16 links"),
        ("NVLink 2@25", "16 links"),
        (EDR, "2 links"),
    ]
    assert (knobs[2].bandwidth, knobs[2].alpha) == (12.5, 1.3)


def test_classes_that_are_called_alike_say_what_they_join():
    """All InfiniBand of two DGX A100 on rails; NVLink of two bandwidths joins GPUs in both."""
    rails = [each.title for each in knobs_of(open_cluster("dgx-a100:hosts=2"))]
    boxes = [each.title for each in knobs_of(open_cluster("dgx-1v"))]

    assert rails == ["NVLink 3", "InfiniBand HDR, GPU to rail", "InfiniBand HDR, spine to rail"]
    assert boxes == ["NVLink 2", "NVLink 2"]


def test_a_knob_moves_its_own_links_alone(ring):
    """Limits are a knob beside the links; where a latency is 0 all get the new one."""
    links, limit = knobs_of(ring)
    moved = changed(ring, Change({links.key: 80.0, limit.key: 60.0}, {links.key: 1.0}))
    assert {each.bandwidth for each in moved.links} == {80.0}
    assert {each.alpha for each in moved.links} == {1.0}
    assert [each.bandwidth for each in moved.limits] == [60.0]
    assert changed(ring, Change()) == ring
    still = open_cluster("thesis-2.1")
    [knob] = knobs_of(still)
    assert {e.alpha for e in changed(still, Change(alpha={knob.key: 2.0})).links} == {2.0}
    with pytest.raises(ProblemError, match="give 0 µs or more"):
        changed(ring, Change(alpha={links.key: -1.0}))


def test_counts_are_those_of_the_gallery():
    """Four hosts of eight GPUs, whose network is moved as that of two was."""
    cluster = open_cluster("ndv2:hosts=2")
    origin = origin_of(cluster) or pytest.fail("it is in the gallery")
    assert origin.counts == {"hosts": 2}
    assert read_origin(origin.name) == origin
    moved = changed(cluster, Change({EDR: 25.0}, arguments={"hosts": 4}), origin)
    assert len(moved.ranks) == 32
    assert {e.bandwidth for e in moved.links if e.medium == "InfiniBand EDR"} == {25.0}
    with pytest.raises(ProblemError):
        changed(cluster, Change(arguments={"hosts": 0}), origin)
    random = origin_of(open_cluster("random")) or pytest.fail("it is in the gallery")
    assert "seed" not in random.counts


def test_the_figures_follow_the_network_of_two_hosts():
    """Half of 1 MB leaves a host: 40 µs over 12.5 GB/s, 20 over 25, and 1.3 µs of latency once.

    At 164/10 GB/s, twice that is the rate, exactly 164/5.
    """
    drawing, today = opened("ndv2:hosts=2")
    now = answering.answer(drawing, ASKED, today, {"bandwidth": {EDR: 25.0}})
    told = now["answer"]
    assert (told["algbw"], told["each"], told["once"]) == pytest.approx((50.0, 20.0, 21.3))
    assert told["cuts"][0]["where"].startswith("25 GB/s out of h")
    assert now["moved"]
    assert answering.answer(drawing, ASKED, today, {"bandwidth": {EDR: 16.4}})["answer"][
        "fraction"
    ] == ("164/5")
    shown = str(page.figures(today["answer"], told))
    assert "+25 GB/s, +100 %" in shown
    assert "−20 µs, −50 %" in shown
    assert "25 GB/s out of" in str(page.cuts(told, 0, today["answer"]))


def test_more_latency_and_another_size_are_counted():
    """10 µs in place of 1.3 on the way out of a host; twice the size takes twice the time."""
    drawing, today = opened("ndv2:hosts=2")
    told = answering.answer(drawing, ASKED, today, {"alpha": {EDR: 10.0}})["answer"]
    assert (told["each"], told["once"]) == pytest.approx((40.0, 50.0))
    twice = answering.answer(drawing, ASKED, today, {"size": "2MB"})
    assert twice["answer"]["each"] == pytest.approx(80.0)
    assert twice["moved"]
    still = answering.answer(drawing, ASKED, today, {"size": "1MB"})
    assert (still["moved"], still["answer"]) == (False, today["answer"])


def test_what_is_applied_is_what_was_shown():
    drawing, today = opened("ndv2:hosts=2")
    values = {"bandwidth": {EDR: 25.0}, "count": {"hosts": 3}, "size": "1MB"}
    shown = answering.answer(drawing, ASKED, today, values)["drawing"]
    made = answering.redrawn(drawing, answering.standing(drawing, ASKED, today, values).topology)
    assert made == shown
    assert len(topology_from_json(made["topology"]).ranks) == 24
    moved = answering.redrawn(
        drawing, answering.standing(drawing, ASKED, today, {"bandwidth": {EDR: 25.0}}).topology
    )
    assert moved["positions"] == drawing["positions"]


def test_what_cannot_be_is_said_in_a_sentence():
    drawing, today = opened("ndv2:hosts=2")
    now = answering.answer(drawing, ASKED, today, {"count": {"hosts": 0}})
    assert now["answer"]["trouble"].endswith(".")
    assert not now["moved"]
    assert now["answer"]["trouble"] in str(page.figures(today["answer"], now["answer"]))
    lonely = {"topology": {**drawing["topology"], "links": []}, "positions": drawing["positions"]}
    assert "trouble" in answering.today(lonely, ASKED)["answer"]


def test_of_a_large_cluster_the_latencies_are_left_out_and_it_is_said():
    _, today = opened("dgx-a100:hosts=16")
    told = today["answer"]
    assert told["once"] is None
    assert "left out above 96 GPUs" in str(page.figures(told, told))
    assert told["algbw"] > 0


def test_the_picture_of_a_large_cluster_is_drawn_once(monkeypatch):
    """Its bandwidths need not follow, other devices do."""
    monkeypatch.setattr(answering, "MOST_REDRAWN", 50)
    drawing, today = opened("ndv2:hosts=2")
    values = {"bandwidth": {EDR: 25.0}}
    for shown, redrawn in ((None, True), (24, True), (16, False)):
        now = answering.answer(drawing, ASKED, today, values, chosen=shown)
        assert (now["drawing"] is not None) is redrawn
    assert answering.answer(drawing, ASKED, today, {}, chosen=16)["drawing"] is not None


def test_every_row_of_the_form_has_a_slider_and_a_number():
    """Without latency today there is nothing to multiply: a number alone."""
    knobs = knobs_of(open_cluster("thesis-2.1"))
    rows = str(form(knobs, {}, size=1e6, size_words="1MB"))
    assert rows.count("'part': 'slide'") == 1
    assert rows.count("'part': 'number'") == 2
    many = form(knobs_of(open_cluster("ndv2")) * 5, {}, size=None, size_words="")
    assert "3 more kinds of links" in str(many[-1])


def test_clusters_of_the_gallery_answer_while_a_slider_moves():
    """0.3 s at most on a machine of its own, median 0.02 s; a loaded one gets longer."""
    slow = {}
    for each in catalog()[1::4]:
        drawing = drawing_of(each.make())
        try:
            today = answering.today(drawing, ASKED)
        except ProblemError:
            continue
        knobs = knobs_of(topology_from_json(drawing["topology"]))
        values = {"bandwidth": {knobs[0].key: knobs[0].bandwidth * 1.37}}
        began = time.perf_counter()
        answering.answer(drawing, ASKED, today, values)
        slow[each.name] = time.perf_counter() - began
    assert max(slow.values()) < 1.5, slow


def test_what_limits_two_hosts_is_the_network():
    """All that crosses is on the network: 1 % more of it gives 1 %, of the others nothing."""
    drawing, today = opened("ndv2:hosts=2")
    stands = answering.standing(drawing, ASKED, today, {"bandwidth": {EDR: 25.0}})
    told = limits_answered(stands.problem, stands.knobs)
    assert told["words"][0].startswith("All-gather runs at 50 GB/s")
    assert [each["more"] for each in told["rows"]] == [1.0, 0.0, 0.0]
    assert told["rows"][0]["key"] == EDR
    assert first_curves(told, stands) == [EDR]
    panel = str(limits(told, marks={EDR: 2}, chosen=[EDR]))
    assert "'whatif-class': 'InfiniBand EDR@12.5'" in panel


def test_a_curve_has_the_kink_where_another_cut_takes_over():
    """A GPU takes in 15/16 over NVLink and a rail of 25 GB/s, and half leaves a host over eight.

    With x times 300 GB/s that is (300 x + 25) 16 / 15, and 2 x 200 GB/s: equal at x = 7 / 6.
    """
    drawing, today = opened("dgx-a100:hosts=2")
    nvlink = "NVLink 3@300"
    stands = answering.standing(drawing, ASKED, today, {"bandwidth": {nvlink: 600.0}})
    [line], _ = curves(stands, [nvlink])
    [kink] = line.breaks
    assert kink == pytest.approx((7 / 6, 400.0))
    assert line.here == pytest.approx((2.0, 400.0))
    assert (line.factors[0], line.factors[-1]) == pytest.approx((0.25, 4.0))
    assert len(rates_figure([line], scheme="light").data) == 3


def test_curves_of_several_classes_are_drawn_and_no_more_than_can_be_told_apart():
    drawing, today = opened("amd-te-ccl")
    stands = answering.standing(drawing, ASKED, today, {})
    lines, _ = curves(stands, [each.key for each in stands.knobs])
    assert [each.mark for each in lines] == [0, 1, 2, 3]
    assert all(each.here[1] == pytest.approx(today["answer"]["algbw"]) for each in lines)
    low = answering.standing(
        drawing, ASKED, today, {"bandwidth": {stands.knobs[0].key: stands.knobs[0].bandwidth * 8}}
    )
    [wide], _ = curves(low, [stands.knobs[0].key])
    assert wide.factors[-1] == pytest.approx(8.0)
    for share in (1.23, 0.77, 369 / 300):  # whose inverse no float is
        moved = {"bandwidth": {stands.knobs[0].key: stands.knobs[0].bandwidth * share}}
        odd = answering.standing(drawing, ASKED, today, moved)
        [line], _ = curves(odd, [stands.knobs[0].key])
        assert line.here[0] == pytest.approx(share)
