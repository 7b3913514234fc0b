"""Schedules of TE-CCL are replayed to what they say, or the report names the rule they break."""

import json
from pathlib import Path

import pytest

from ccl.collective import all_gather, all_to_all
from ccl.errors import FormatError
from ccl.simulate import simulate
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from gallery.nvidia import ndv2
from interchange.formats.format import Question, Request
from interchange.formats.synthesizers.te_ccl import READER
from tests.interchange.formats.te_ccl import (
    MB,
    line,
    line_all_gather,
    met,
    read,
    schedule,
    star,
    told,
)

SAMPLE = Path(__file__).parent / "samples" / "te_ccl_schedule_star.json"


def replay(imported):
    document = imported.document
    verify(document.problem, document.plan)
    return simulate(document.problem, document.plan).makespan


def test_a_sample_takes_as_long_as_it_says():
    """One GPU after the other sends its 1 MB, which the switch copies: 3 x 100 µs at 10 GB/s."""
    value = json.loads(SAMPLE.read_text())
    imported = read(value, star(3))

    document = imported.document
    assert document.problem.collective == all_gather(3, 3 * MB)
    assert document.topology == star(3)
    assert document.plan.epoch_duration == pytest.approx(100)
    assert [send.epoch for send in document.plan.sends] == [0, 0, 1, 1, 2, 2]
    assert all(send.via == ("s",) for send in document.plan.sends)
    assert replay(imported) == pytest.approx(300)
    assert "they agree within one epoch" in told(imported)
    assert "a chunk is 1,000,000 bytes" in told(imported)
    assert READER.recognises(SAMPLE.read_bytes())


def test_switches_copy_where_the_flows_part():
    imported = read(json.loads(SAMPLE.read_text()), star(3, copies=False))

    assert imported.document.topology == star(3)
    assert "s copies, as the flows need" in told(imported)


def test_older_files_number_their_keys_otherwise():
    """The linear program wrote 6-Flows and 7-Chunk paths."""
    value = json.loads(SAMPLE.read_text())
    value["6-Flows"], value["7-Chunk paths"] = value.pop("7-Flows"), value.pop("8-Chunk paths")
    del value["6-Demand_Met"]

    assert replay(read(value, star(3))) == pytest.approx(300)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_numbers_are_places_or_count_gpus_and_switches_apart(place):
    """The file's switch is number 0; on the cluster it stands anywhere among the GPUs."""
    made = star(3)
    devices = list(made.devices[1:])
    devices.insert(place, made.devices[0])
    moved = Topology("moved", tuple(devices), made.links)

    assert replay(read(json.loads(SAMPLE.read_text()), moved)) == pytest.approx(300)


def test_a_chunk_of_a_line_is_passed_on_at_once():
    topology, value = line_all_gather(5)

    imported = read(value, topology)
    assert replay(imported) == pytest.approx(400)
    assert imported.document.plan.epoch_duration == pytest.approx(100)


def test_latencies_that_it_drops_lengthen_the_epochs():
    """5 µs are no tenth of an epoch of 100 µs: epochs are 105 µs, and 4 hops end at 420 µs."""
    topology, value = line_all_gather(5, alpha=5.0)

    imported = read(value, topology)
    assert imported.document.plan.epoch_duration == pytest.approx(105)
    assert replay(imported) == pytest.approx(420)
    assert "epochs are 105 µs instead of 100 µs" in told(imported)
    assert "they agree within one epoch" in told(imported)


def test_latencies_that_it_must_count_and_ignores_are_a_broken_rule():
    """60 µs count for an epoch, so a chunk may go on in every second one: 4 x 160 = 640 µs."""
    topology, value = line_all_gather(5, alpha=60.0)

    imported = read(value, topology)
    assert replay(imported) == pytest.approx(640)
    assert "a rule is broken: latency is ignored 12 times" in told(imported)
    assert "2.4 epochs later: a rule is broken" in told(imported)


def custom(flows, ends, *, epochs, gpus=3):
    """A schedule in epochs of 100 µs of 1 MB that GPU 1 has for others."""
    met = {"6-Demand_Met": {f"GPU {end}": {"GPU 1": {"Chunk 0": 1.0}} for end in ends}}
    return schedule(flows, tau=100, epochs=epochs, gpus=gpus, chunk=MB, **met)


def test_a_slow_link_out_of_a_switch_counts_as_quick_in_the_file():
    """The last GPU receives at 2.5 GB/s, 400 µs for 1 MB, and passes it on after one epoch."""
    flows = ["0 from 1: 1->3 in epoch 0 via switches 0", "0 from 1: 3->2 in epoch 1 via switches 0"]

    imported = read(custom(flows, (2, 3), epochs=2), star(3, last=2.5))
    assert imported.document.problem.collective.kind == "custom"
    assert replay(imported) == pytest.approx(500)
    assert "3 epochs later: 1 link out of switches take longer" in told(imported)
    assert "s->g2 takes 4 epochs for a chunk" in told(imported)


def test_a_slow_link_that_counts_as_quick_is_a_broken_rule():
    """Three links of 2.5 GB/s one after the other: 1,200 µs, of which the file says 300."""
    flows = [f"0 from 1: {k + 1}->{k + 2} in epoch {k}" for k in range(3)]

    imported = read(custom(flows, (2, 3, 4), epochs=3, gpus=5), line(5, bandwidth=2.5))
    assert replay(imported) == pytest.approx(1200)
    assert "9 epochs later: a rule is broken: a slow link counts as a quick one" in told(imported)


def test_a_file_may_say_fewer_epochs_than_it_takes():
    """What is sent in epoch 2 over a slow link is there after 6 epochs and not after 3."""
    imported = read(custom(["0 from 1: 1->2 in epoch 2"], (2,), epochs=3), line(3, bandwidth=2.5))

    assert "its flows need 6 epochs" in told(imported)


def test_epochs_of_the_slowest_link_are_no_rule_of_the_replay():
    """A chunk takes 400 µs in the file and 100 µs here: 400 µs instead of 1,600."""
    topology, value = line_all_gather(5)
    value |= {"1-Epoch_Duration": 4e-4, "4-Collective_Finish_Time": 1.6e-3}
    value["5-Algo_Bandwidth"] = 5 * MB * 1e-9 / 1.6e-3

    imported = read(value, topology)
    assert imported.document.plan.duration == pytest.approx(1600)
    assert replay(imported) == pytest.approx(400)
    assert "its flows take 1600 µs as it counts: they agree within one epoch" in told(imported)
    assert "3 epochs earlier: every hop takes whole epochs in the file" in told(imported)


def test_bandwidth_is_of_all_chunks():
    """TE-CCL's figure counts 4 GPUs x 1 MB in 600 µs; with 2 chunks it is 8 MB."""
    topology, value = line_all_gather(4)
    later = [each.replace("Chunk 0", "Chunk 1") for each in value["7-Flows"]]
    later = [each[:-1] + str(int(each[-1]) + 3) for each in later]
    value["7-Flows"] += later
    value |= {"3-Epochs_Required": 6, "4-Collective_Finish_Time": 6e-4}
    value |= {"5-Algo_Bandwidth": 4e-3 / 6e-4, "6-Demand_Met": met(range(4), chunks=2)}

    imported = read(value, topology)
    assert imported.document.problem.collective == all_gather(4, 8 * MB, chunks=2)
    assert replay(imported) == pytest.approx(600)
    assert "13.33 over the stated time; the 6.667 of the file" in told(imported)


def test_equal_lines_of_amounts_are_told_apart_by_their_ways():
    """Two halves cross the first link in one epoch, which the flows say once."""
    text = "with volume 0.5 in epoch"
    flows = [f"1 from 0: 0->1 {text} 0", f"1 from 0: 1->2 {text} 1", f"1 from 0: 1->2 {text} 2"]
    ways = [
        [[0, f"0->1 {text} 0"], [1, f"1->2 {text} 1"]],
        [[0, f"0->1 {text} 0"], [2, f"1->2 {text} 2"]],
    ]
    paths = {"Demand at 2 for chunk 1 from 0 met by epoch 2": ways}
    value = schedule(flows, tau=100, epochs=3, gpus=3, chunk=MB, **{"8-Chunk paths": paths})

    imported = read(value, line(3))
    sends = imported.document.plan.sends
    assert [(send.epoch, send.fraction) for send in sends] == [(0, 1.0), (1, 0.5), (2, 0.5)]
    assert replay(imported) == pytest.approx(200)


def test_amounts_without_ways_leave_in_the_order_in_which_they_came():
    """An all-to-all of three GPUs on a line; what goes from end to end goes in halves."""
    half = "with volume 0.5 in epoch"
    whole = "with volume 1.0 in epoch"
    flows = [
        f"1 from 0: 0->1 {whole} 0",
        f"0 from 1: 1->0 {whole} 0",
        f"2 from 1: 1->2 {whole} 0",
        f"1 from 2: 2->1 {whole} 0",
        *(f"2 from 0: {a}->{b} {half} {k}" for a, b, k in ((0, 1, 1), (0, 1, 2), (1, 2, 2))),
        *(f"0 from 2: {a}->{b} {half} {k}" for a, b, k in ((2, 1, 1), (2, 1, 2), (1, 0, 2))),
        f"2 from 0: 1->2 {half} 3",
        f"0 from 2: 1->0 {half} 3",
    ]
    value = schedule(flows, tau=100, epochs=4, gpus=3, chunk=MB)

    imported = read(value, line(3))
    assert imported.document.problem.collective == all_to_all(3, 3 * MB)
    assert replay(imported) == pytest.approx(250)
    assert "an all-to-all among 3 GPUs is wanted; the file does not say" in told(imported)


HALVES = [f"1 from 0: 0->1 with volume 0.5 in epoch {k}" for k in (0, 1)]
DEMAND = "Demand at 1 for chunk 1 from 0 met by epoch 1"


def test_amounts_that_are_missing_are_a_demand_that_is_not_met():
    """Of a chunk one half is sent; nothing makes it whole."""
    value = schedule(HALVES[:1], tau=100, epochs=2, gpus=2, chunk=MB)
    value["6-Demand_Met"] = {"GPU 1": {"GPU 0": {"Chunk 1": 1.0}}}
    for lenient in ("true", "false"):
        with pytest.raises(
            FormatError, match=r"demand not met: 0\.5 of chunk 1 from 0 comes to g1"
        ):
            read(value, line(2), lenient=lenient)


def test_more_than_a_device_holds_is_not_sent():
    flows = [*HALVES, "1 from 0: 0->1 with volume 0.25 in epoch 2"]
    value = schedule(flows, tau=100, epochs=3, gpus=2, chunk=MB)
    value["6-Demand_Met"] = {"GPU 1": {"GPU 0": {"Chunk 1": 1.0}}}

    with pytest.raises(FormatError, match=r"epoch 2: 0 sends 0\.25 of a chunk of GPU 0 to 1 that"):
        read(value, line(2))


def test_ways_that_are_not_those_of_the_flows_do_not_count():
    """The flows send both halves in time, the ways one of them much later."""
    late = HALVES[1].split(": ")[1].replace("epoch 1", "epoch 9")
    ways = [[[0, HALVES[0].split(": ")[1]]], [[9, late]]]
    value = schedule(HALVES, tau=100, epochs=2, gpus=2, chunk=MB)
    value["8-Chunk paths"] = {DEMAND: ways}

    imported = read(value, line(2))
    assert [send.epoch for send in imported.document.plan.sends] == [0, 1]
    assert "the flows of 1 chunks are not those of their paths and count" in told(imported)


def test_what_stops_at_a_switch_is_joined_to_what_leaves_it():
    """TE-CCL's A* writes link by link, and the switch sends on in the next epoch.

    All go up at once, and every GPU receives two chunks one after the other: 100 + 200 µs.
    """
    flows = []
    for k, gpu in enumerate((1, 2, 3)):
        others = [each for each in (1, 2, 3) if each != gpu]
        flows.append(f"0 from {gpu}: {gpu}->0 in epoch {k}")
        flows += [f"0 from {gpu}: 0->{other} in epoch {k + 1}" for other in others]
    value = schedule(flows, tau=100, epochs=4, gpus=3, chunk=MB)

    imported = read(value, star(3))
    assert imported.document.problem.collective == all_gather(3, 3 * MB)
    assert replay(imported) == pytest.approx(300)
    assert "an all-gather among 3 GPUs is wanted" in told(imported)


def test_the_last_round_of_several_is_no_plan():
    """TE-CCL's A* leaves out what earlier rounds sent, and the demand with it."""
    _, value = line_all_gather(4)
    del value["6-Demand_Met"]
    value["7-Flows"] = [each for each in value["7-Flows"] if "epoch 0" not in each]

    with pytest.raises(FormatError, match="A\\* writes the flows of the last only"):
        read(value, line(4))


def test_without_a_cluster_the_flows_are_one():
    """Links of the line, each as wide as one chunk of 1 MB in 100 µs: 10 GB/s."""
    _, value = line_all_gather(4)
    imported = read(value)

    assert imported.document.topology.links[0].bandwidth == pytest.approx(10)
    assert len(imported.document.topology.links) == 6
    assert replay(imported) == pytest.approx(300)
    assert "6 links are those of the flows" in told(imported)


def test_a_switch_of_the_flows_is_one():
    imported = read(json.loads(SAMPLE.read_text()))

    assert imported.document.topology.device("s0").copies
    assert replay(imported) == pytest.approx(300)


def test_gpu_0_of_ndv2_is_crossed_as_a_switch():
    """TE-CCL's own slip: 15 GPUs want chunks, and GPU 0 passes on what is for others."""
    flows = ["0 from 4: 4->9 in epoch 0 via switches 0", "0 from 4: 9->8 in epoch 1"]
    demands = {"GPU 8": {"GPU 4": {"Chunk 0": 0.01}}, "GPU 9": {"GPU 4": {"Chunk 0": 0.005}}}
    value = schedule(
        flows, tau=5000, epochs=2, gpus=16, chunk=62.5 * MB, **{"6-Demand_Met": demands}
    )

    for imported in (read(value, ndv2(hosts=2)), read(value, cluster="NDv2", chassis="2")):
        assert len(imported.document.topology.ranks) == 15
        assert "a chunk is 62,500,000 bytes" in told(imported)
        assert imported.document.topology.device("g0").kind == "switch"
        # 5 ms out of GPU 0 after 0.7 µs into it, 1.3 µs out of it, then 1.25 ms and 0.7 µs.
        assert replay(imported) == pytest.approx(6252.7)


def test_a_file_of_another_cluster_asks_which():
    """Links 4->9 through number 0 and 8->1 are those of two NDv2, and of no other cluster."""
    flows = ["0 from 4: 4->9 in epoch 0 via switches 0", "0 from 8: 8->1 in epoch 0"]
    demands = {"GPU 9": {"GPU 4": {"Chunk 0": 1.0}}, "GPU 1": {"GPU 8": {"Chunk 0": 1.0}}}
    value = schedule(flows, tau=5000, epochs=1, gpus=16, chunk=62.5 * MB)
    value["6-Demand_Met"] = demands

    with pytest.raises(
        Question, match=r"^plan\.json: it uses the link 4->0 \(and 2 more\)"
    ) as asks:
        read(value, line(3))
    assert asks.value.key == "cluster"
    assert list(asks.value.choices) == ["NDv2:2", "flows"]
    assert len(read(value, line(3), cluster="NDv2:2").document.topology.ranks) == 15
    assert len(read(value, line(3), cluster="flows").document.topology.links) == 3


def test_a_mesh_may_have_the_links_that_the_released_code_adds():
    """Side 2: GPU 1 is joined with GPU 2, the beginning of the next row."""
    demands = {"GPU 2": {"GPU 1": {"Chunk 0": 1e-5}}}
    value = schedule(
        ["0 from 1: 1->2 in epoch 0"],
        tau=10,
        epochs=1,
        gpus=4,
        chunk=MB,
        **{"6-Demand_Met": demands},
    )
    imported = read(value, cluster="mesh", side_length="2")

    assert ("g1", "g2") in imported.document.topology.link_index
    assert "as TE-CCL's released code builds it" in told(imported)


def changed(value, line, into):
    """Put a line in the place of the first that holds a text."""
    flows = list(value["7-Flows"])
    place = next(i for i, each in enumerate(flows) if line in each)
    flows[place : place + 1] = [each for each in [into] if each]
    return value | {"7-Flows": flows}


@pytest.mark.parametrize(
    ("line", "into", "rule"),
    [
        ("0 from 0 traveled over 3->4", "", "demand not met: g4 wants chunk 0 of g0"),
        (
            "0 from 0 traveled over 3->4",
            "Chunk 0 from 0 traveled over 3->4 in epoch 2",
            "epoch 2: chunk 0 g3->g4 leaves before it arrived; it comes to g3 in epoch 2",
        ),
        (
            "0 from 1 traveled over 3->4",
            "Chunk 0 from 1 traveled over 3->4 in epoch 3",
            r"epoch 3: link g3->g4 carries 2 chunks and can carry 1 in an epoch of 100 µs",
        ),
        (
            "0 from 0 traveled over 3->4",
            "Chunk 0 from 0 traveled over 2->4 in epoch 3",
            "it uses the link 2->4, which line has not",
        ),
        ("0 from 0 traveled over 3->4", "Chunk 0 von 0", r"at Flows\[3\]: 'Chunk 0 von 0'"),
    ],
)
def test_a_broken_rule_is_named_with_epoch_and_link(line, into, rule):
    topology, value = line_all_gather(5)

    with pytest.raises(FormatError, match=r"^plan\.json: .*" + rule):
        read(changed(value, line, into), topology)


def test_lenient_plays_what_breaks_a_rule_in_its_order():
    """Chunks 0 and 1 of epoch 3 cross the link one after the other, ending after 500 µs."""
    topology, value = line_all_gather(5)
    twice = changed(
        value, "0 from 1 traveled over 3->4", "Chunk 0 from 1 traveled over 3->4 in epoch 3"
    )

    imported = read(twice, topology, lenient="true")
    assert replay(imported) <= 500 * (1 + 1e-9)
    assert "a rule is broken: epoch 3: link g3->g4 carries 2 chunks" in told(imported)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"4-Collective_Finish_Time": 1e-4},
            "4 epochs of 100 µs are 400 µs, and the file says 100",
        ),
        ({"3-Epochs_Required": 2}, "its flows need 4 epochs"),
        ({"6-Demand_Met": met(range(5), time=1e-4)}, "Demand_Met is too early 12 times"),
    ],
)
def test_figures_that_do_not_fit_the_flows_are_told(more, said):
    """Of 20 demands, the 8 of neighbours are met within the first epoch."""
    topology, value = line_all_gather(5)

    assert said in told(read(value | more, topology))


def test_a_file_that_says_far_more_epochs_than_it_takes_is_told():
    """Four epochs of 100 µs are all that the line takes, and it says ten."""
    topology, value = line_all_gather(5)
    value |= {"3-Epochs_Required": 10, "4-Collective_Finish_Time": 1e-3, "5-Algo_Bandwidth": 5.0}

    said = told(read(value, topology))
    assert "6 epochs earlier: its flows are done after 400 µs" in said


def test_the_size_of_a_chunk_may_be_given():
    topology, value = line_all_gather(3)
    del value["5-Algo_Bandwidth"]

    with pytest.raises(FormatError, match="set chunk_size in GB"):
        read(value, topology)
    imported = read(value, topology, chunk_size="0.001")
    assert imported.document.problem.collective == all_gather(3, 3 * MB)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"cluster": "DGX9"}, "'DGX9' is unknown"),
        ({"cluster": "NDv2", "chassis": "x"}, "setting chassis is 'x'"),
        ({"cluster": "DGX1", "alpha": "1,2,3"}, "setting alpha"),
        ({"chunk_size": "nan"}, "setting chunk_size"),
        ({"cluster": "DGX2", "chassis": "9"}, "DGX2 has 1 to 2 chassis"),
    ],
)
def test_settings_are_checked(typed, said):
    topology, value = line_all_gather(3)
    with pytest.raises(FormatError, match=said):
        read(value, topology, **typed)


def test_a_device_is_a_gpu_or_a_switch():
    flows = ["0 from 0: 0->1 in epoch 0", "0 from 1: 1->2 in epoch 0 via switches 0"]
    names = [device("gpu", name) for name in ("a", "b", "c")]
    links = (*duplex("a", "b", bandwidth=10), *duplex("a", "c", bandwidth=10))
    value = schedule(flows, tau=100, epochs=2, gpus=3, chunk=MB)
    with pytest.raises(FormatError, match="has chunks of its own and is crossed as a switch"):
        read(value, Topology("t", tuple(names), links))


def test_nothing_else_is_recognised():
    assert not READER.recognises(b'{"7-Flows": []}')
    with pytest.raises(FormatError, match="it has no flows"):
        READER.read(b'{"1-Epoch_Duration": 1, "7-Flows": []}', Request(name="x.json"))
