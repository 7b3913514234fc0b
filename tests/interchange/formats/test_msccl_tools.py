"""JSON of MSCCL-tools, SCCL and TACCL: what counts and steps mean, and what comes back."""

import copy
import json
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import (
    Chunk,
    all_gather,
    all_reduce,
    all_to_all,
    custom,
    make_collective,
    reduce_scatter,
)
from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.plans import Flow, Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import solve
from gallery.nvidia import dgx_1v
from interchange.formats.format import Imported, NoOptions, Question, Request, Written
from interchange.formats.synthesizers.msccl_tools import READER, WRITER
from interchange.formats.synthesizers.msccl_tools import cluster as files_cluster
from tests.ccl.clusters import (
    gpus,
    mesh,
    ring,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    star,
    star_all_gather,
)
from tests.ccl.undirected import on_a_line
from tests.interchange.formats.strategies import clusters, planned

LINE = {"msccl_type": "topology", "name": "Line", "switches": [], "links": [[0, 0], [2, 0]]}
"""By destination: two links from 0 to 1 and none back."""

HUB: dict[str, Any] = {
    "msccl_type": "topology",
    "name": "HubAndSpoke(n=3)",
    "links": [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
    "switches": [
        *(
            [[gpu], [each for each in range(3) if each != gpu], 1, f"node_{gpu}_out"]
            for gpu in range(3)
        ),
        *(
            [[each for each in range(3) if each != gpu], [gpu], 1, f"node_{gpu}_in"]
            for gpu in range(3)
        ),
    ],
}


def round_about(count: int) -> dict[str, Any]:
    """Return an all-gather around a one-way ring; in step k rank r sends address r - k."""
    links = [[int((dst - src) % count == 1) for src in range(count)] for dst in range(count)]
    return {
        "msccl_type": "algorithm",
        "name": "ring",
        "instance": {"msccl_type": "instance", "steps": count - 1, "chunks": 1, "pipeline": None},
        "input_map": {str(rank): [rank] for rank in range(count)},
        "output_map": {str(rank): list(range(count)) for rank in range(count)},
        "steps": [
            {
                "msccl_type": "step",
                "rounds": 1,
                "sends": [[(r - k) % count, r, (r + 1) % count] for r in range(count)],
            }
            for k in range(count - 1)
        ],
        "topology": {"msccl_type": "topology", "name": "Ring", "switches": [], "links": links},
    }


def read(value: dict[str, Any], topology: Topology | None = None, **settings: str) -> Imported:
    content = json.dumps(value).encode()
    assert READER.recognises(content)
    return READER.read(content, Request(name="m.json", topology=topology, settings=settings))


def plan_of(found: Imported) -> tuple[Problem, Schedule]:
    problem, plan = found.document.problem, found.document.plan
    assert problem is not None
    assert isinstance(plan, Schedule)
    verify(problem, plan)
    return problem, plan


def made(content: Document) -> tuple[dict[str, Any], Written]:
    written = WRITER.write(content, NoOptions())
    return json.loads(written.content), written


def test_a_row_is_a_destination_unless_it_is_said_otherwise():
    with pytest.raises(Question, match=r"^m\.json: its matrix is not symmetric") as asked:
        read(LINE)
    assert asked.value.key == "direction"
    found = read(LINE, direction="destination-major").document.topology
    assert [(each.ends, each.bandwidth, each.count) for each in found.links] == [
        (("g0", "g1"), 50.0, 2)
    ]
    assert set(read(LINE, direction="source-major").document.topology.link_index) == {("g1", "g0")}


def test_a_link_counts_as_much_as_the_setting_says():
    found = read(LINE, direction="destination-major", bandwidth="20.6", alpha="0.7")
    assert found.document.topology.links == (Link("g0", "g1", 41.2, 0.7, count=2),)
    assert not any("25 GB/s" in each for each in found.report.assumed)


def test_a_matrix_of_too_many_pairs_is_refused(monkeypatch):
    monkeypatch.setattr(files_cluster, "MOST_CONNECTED", 5)
    with pytest.raises(FormatError, match="6 pairs of GPUs are joined; 5 at most"):
        read(HUB)


def test_switches_limit_what_goes_together():
    """A GPU of a hub has the bandwidth of one link for all others: 25 GB/s."""
    found = read(HUB).document.topology
    assert len(found.limits) == 6
    assert found.limits[0] == SharedLimit("node_0_out", (("g0", "g1"), ("g0", "g2")), 25.0)


def test_a_ring_is_an_all_gather_of_its_makespan():
    """Three steps of 1 MB at 25 GB/s, 40 µs each; the sends say which way the links go."""
    found = read(round_about(4))
    problem, plan = plan_of(found)
    assert problem.collective == all_gather(4, 4e6)
    assert simulate(problem, plan).makespan == pytest.approx(120.0)
    assert set(problem.topology.link_index) == {(f"g{r}", f"g{(r + 1) % 4}") for r in range(4)}
    assert any("sends fit no other reading" in each for each in found.report.assumed)
    assert any("makespan is 120 µs" in each for each in found.report.taken)
    assert plan_of(read(round_about(4), chunk_size="2MB"))[0].collective.size == 8e6


def test_a_plan_without_a_topology_is_laid_on_the_open_one():
    value = round_about(3)
    del value["topology"]
    found = read(value, ring(3, bandwidth=50.0))
    problem, plan = plan_of(found)
    assert problem.topology == ring(3, bandwidth=50.0)
    assert simulate(problem, plan).makespan == pytest.approx(40.0)
    with pytest.raises(FormatError, match=r"^m\.json: it is a plan without a topology"):
        read(value)
    value["steps"][1]["sends"][0] = [1, 1, 0]
    with pytest.raises(FormatError, match=r"step 1 sends chunk 1 over g1->g0, which is not a link"):
        read(value, ring(3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: v["steps"][0]["sends"].append([0, 0, 1]), "2 chunks over g0->g1, which carries"),
        (lambda v: v["steps"][0]["sends"].pop(), "1 does not hold it|0 does not hold it"),
        (lambda v: v["steps"].pop(), "chunk . is not in g."),
        (lambda v: v["steps"].reverse(), "does not hold it when the step begins"),
        (
            lambda v: v["steps"][0]["sends"].__setitem__(0, [9, 0, 1]),
            "sends address 9, which no rank",
        ),
        (
            lambda v: v["steps"][0]["sends"].append([0, 0, 9]),
            r"steps\[0\].sends\[3\]: it goes from",
        ),
        (lambda v: v["steps"][0]["sends"].append([0, 0]), r"sends\[3\]: it has 2 items"),
        (lambda v: v["steps"][0]["sends"].append(["x", 0, 1]), "whole numbers; one is not"),
        (lambda v: v["steps"][0].update(rounds=0), r"steps\[0\]: 0 rounds"),
        (
            lambda v: v["output_map"]["0"].append(7),
            "address 7 is wanted by rank 0 and held by none",
        ),
        (lambda v: v["input_map"].update({"5": [1]}), "address 1 is of rank 5"),
        (lambda v: v.update(input_map={}), "neither input_map and output_map"),
        (lambda v: v.update(steps=[]), "not symmetric|sends nothing"),
        (lambda v: v["topology"]["links"][1].pop(), r"at links\[1\]: it has 2 values for 3 GPUs"),
    ],
)
def test_a_broken_plan_is_refused_with_the_rule(change, words):
    value = copy.deepcopy(round_about(3))
    change(value)
    with pytest.raises(FormatError, match=rf"^m\.json: .*({words})"):
        read(value)


def test_no_send_of_a_plan_can_be_missing():
    """Around a one-way ring every rank gets every chunk once, so that each send is needed."""
    for step in range(3):
        for place in range(4):
            value = round_about(4)
            del value["steps"][step]["sends"][place]
            with pytest.raises(FormatError, match=r"does not hold it|is not in g"):
                read(value)


def test_rounds_are_kept_by_links_and_switches():
    """Around a hub a GPU sends one chunk a round: two need two, and one is refused."""
    value = round_about(3) | {"topology": HUB}
    straight = [[src, src, dst] for src in range(3) for dst in range(3) if src != dst]
    value["steps"] = [{"msccl_type": "step", "rounds": 2, "sends": straight}]
    problem, plan = plan_of(read(value))
    assert simulate(problem, plan).makespan == pytest.approx(80.0)
    value["steps"][0]["rounds"] = 1
    with pytest.raises(FormatError, match="step 0 sends 2 chunks over node_0_out, which carries 1"):
        read(value)


def test_chunks_that_share_an_address_are_added_up():
    """Both ranks send their part of address 0 and 1 to the rank that wants the sum."""
    value = round_about(2)
    value["collective"] = {
        "msccl_type": "collective",
        "name": "ReduceScatter(n=2)",
        "nodes": 2,
        "chunks": [
            {"msccl_type": "chunk", "pre": [origin], "post": [dst], "addr": dst}
            for dst in range(2)
            for origin in range(2)
        ],
        "triggers": {},
    }
    value["input_map"] = {"0": [0, 1], "1": [0, 1]}
    value["output_map"] = {"0": [0], "1": [1]}
    value["steps"] = [{"msccl_type": "step", "rounds": 1, "sends": [[1, 0, 1], [0, 1, 0]]}]
    problem, _ = plan_of(read(value))
    assert problem.collective == reduce_scatter(2, 2e6)
    del value["collective"]
    assert any(
        "hold at first is added up, 2 of 2 places" in each for each in read(value).report.assumed
    )


def test_different_sums_of_an_address_are_refused():
    value = round_about(2)
    chunks = [{"pre": [r], "post": list(range(r, 2)), "addr": 0} for r in range(2)]
    value["collective"] = {"chunks": chunks, "nodes": 2}
    with pytest.raises(FormatError, match="as in a scan"):
        read(value)


def test_the_sends_of_taccl_are_in_the_order_of_their_times():
    """0 to 1 at 0 and 1 to 2 at 5 stand in one step, the later first: two epochs of 8 µs."""
    value = {
        "sccl_type": "algorithm",
        "name": "Broadcast(n=3,root=0)-x",
        "input_map": {"0": [0]},
        "output_map": {"0": [0], "1": [0], "2": [0]},
        "steps": [
            {
                "sccl_type": "step",
                "rounds": 80,
                "sends": [[0, 1, 2, 5, 0, None], [0, 0, 1, 0, 0, None]],
            }
        ],
        "topology": {
            "sccl_type": "topology",
            "name": "mine",
            "copies": 1,
            "ngpus_per_node": 3,
            "node_links": [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
            "node_invbws": [[0, 0, 0], [8, 0, 0], [0, 8, 0]],
            "remote_invbw": None,
            "remote_alpha": None,
            "remote_beta": None,
            "internode_conn": None,
            "local_switches": [],
        },
    }
    found = read(value, direction="destination-major")
    problem, plan = plan_of(found)
    assert problem.collective == make_collective("broadcast", 3, 1e6)
    assert [(each.epoch, each.src) for each in plan.sends] == [(0, "g0"), (1, "g1")]
    assert simulate(problem, plan).makespan == pytest.approx(16.0)
    assert any("have times" in each for each in found.report.taken)


def test_hosts_of_taccl_share_what_joins_them():
    """Local GPU 0 reaches GPU 1 of two other hosts over one port of 1 MB in 100 µs, 10 GB/s."""
    found = read(
        {
            "sccl_type": "topology",
            "name": "three",
            "copies": 3,
            "ngpus_per_node": 2,
            "node_links": [[0, 1], [1, 0]],
            "node_invbws": [[0, 20], [20, 0]],
            "remote_invbw": 103,
            "remote_alpha": 3,
            "remote_beta": 100,
            "internode_conn": {"0": [1]},
            "local_switches": [[0, 1]],
        }
    ).document.topology
    assert found.hosts == ("h0", "h1", "h2")
    assert found.link("g2", "g3").bandwidth == 50.0
    assert found.link("g0", "g5") == Link("g0", "g5", 10.0, 3.0)
    assert SharedLimit("GPU 0 out remote", (("g0", "g3"), ("g0", "g5")), 10.0) in found.limits
    assert len(found.limits) == 6


def test_a_collective_is_a_problem_of_the_open_cluster():
    chunks = [{"msccl_type": "chunk", "pre": [r], "post": [0, 1, 2], "addr": r} for r in range(3)]
    value = {"msccl_type": "collective", "name": "Allgather(n=3)", "nodes": 3, "chunks": chunks}
    found = read(value, ring(3))
    assert found.document.problem == Problem(ring(3), all_gather(3, 3e6))
    with pytest.raises(FormatError, match="it is for 3 ranks and the topology has 4 GPUs"):
        read(value, ring(4))
    with pytest.raises(FormatError, match="no cluster is open"):
        read(value)


def test_an_instance_or_another_type_is_told():
    with pytest.raises(FormatError, match=r"^m\.json: it is an instance"):
        read({"msccl_type": "instance", "steps": 2})
    with pytest.raises(FormatError, match="'step'; there are topology, algorithm"):
        read({"msccl_type": "step"})


def test_sends_that_bring_nothing_new_are_left_out():
    value = round_about(3)
    value["steps"].append({"rounds": 1, "sends": [[2, 0, 1]]})
    found = read(value)
    assert "1 send of what is held at its destination already" in found.report.left_out
    assert len(plan_of(found)[1].sends) == 6


def test_four_counts_stand_for_a_topology_and_come_back():
    """100 and 50 GB/s are two and one of 50; a limit of 75 is 1.5."""
    links = (
        Link("g0", "g1", 100.0, count=2),
        *duplex("g1", "g2", bandwidth=50.0),
        Link("g2", "g0", 50.0),
    )
    limits = (SharedLimit("port", (("g1", "g2"), ("g2", "g1")), 75.0),)
    topology = Topology("four", gpus(3), links, limits)
    value, written = made(document(topology))
    assert value["links"] == [[0, 0, 1], [2, 0, 1], [0, 1, 0]]
    assert value["switches"] == [[[1, 2], [1, 2], 1.5, "port"]]
    assert written.lost == ("bandwidths in GB/s: a link that counts 1 is 50 GB/s",)
    found = read(value, bandwidth="50", direction="destination-major").document.topology
    assert {each.ends: each for each in found.links} == {each.ends: each for each in links}
    assert found.limits == limits
    assert (found.name, found.devices) == (topology.name, topology.devices)


def test_a_switch_is_a_limit_in_and_out_of_each_gpu():
    """Three GPUs around a switch of 50 GB/s are the hub of MSCCL-tools."""
    value, written = made(document(star(3, bandwidth=50.0)))
    assert value["links"] == HUB["links"]
    assert sorted(each[:3] for each in value["switches"]) == sorted(
        list(each[:3]) for each in HUB["switches"]
    )
    assert any("6 pairs of GPUs are joined over them" in each for each in written.lost)


def test_a_plan_over_a_stop_at_a_switch_goes_from_gpu_to_gpu():
    """What the switch sends on came from a GPU, which sends it to each of the others itself.

    The switch copies, the GPU must send twice: two rounds where the switch took one epoch.
    """
    topology = star(3, copies=True)
    problem, plan = star_all_gather(topology)
    value, _ = made(document(problem, plan=plan))
    assert [step["sends"] for step in value["steps"]] == [
        [[r, r, other] for other in range(3) if other != r] for r in range(3)
    ]
    assert [step["rounds"] for step in value["steps"]] == [2, 2, 2]
    assert plan_of(read(value))[0].collective == all_gather(3, 3e6)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (ring_all_gather, "Allgather(n=4)"),
        (ring_reduce_scatter, "ReduceScatter(n=4)"),
        (ring_all_reduce, "Allreduce(n=4),chunks=4"),
    ],
)
def test_plans_of_a_ring_come_back(make, kind):
    problem, plan = make(ring(4))
    value, _ = made(document(problem, plan=plan))
    assert value["collective"]["name"] == kind
    again, read_plan = plan_of(read(value, bandwidth="50"))
    assert again == Problem(
        Topology("ring", problem.topology.devices, again.topology.links), problem.collective
    )
    assert {*again.topology.links} == {*problem.topology.links}
    assert read_plan.sends == plan.sends
    assert simulate(again, read_plan).makespan == simulate(problem, plan).makespan


def test_an_all_to_all_has_the_addresses_of_msccl_tools():
    """By destination and source, what a rank keeps included: 4 of 2 ranks, of which 2 move."""
    problem = Problem(mesh(2), all_to_all(2, 2e6))
    plan = Schedule((Send(0, 0, "g0", "g1"), Send(0, 1, "g1", "g0")), 20.0, 1)
    value, _ = made(document(problem, plan=plan))
    assert value["input_map"] == {"0": [0, 2], "1": [1, 3]}
    assert value["output_map"] == {"0": [0, 1], "1": [2, 3]}
    assert value["steps"][0]["sends"] == [[2, 0, 1], [1, 1, 0]]
    again, read_plan = plan_of(read(value, bandwidth="50"))
    assert again.collective == problem.collective
    assert read_plan.sends == plan.sends


def test_bandwidths_of_no_common_measure_are_rounded_and_said():
    links = (Link("g0", "g1", 1.0), Link("g1", "g0", 31415.9265))
    value, written = made(document(Topology("odd", gpus(2), links)))
    assert value["links"] == [[0, 31416], [1, 0]]
    assert any("by up to 0.0%" in each for each in written.lost)


def test_a_plan_that_has_no_whole_chunks_leaves_the_topology():
    problem = Problem(mesh(2), all_to_all(2, 2e6))
    value, written = made(document(problem, plan=Flow(())))
    assert value["msccl_type"] == "topology"
    assert any("a flow has no steps" in each for each in written.lost)
    value, written = made(document(problem))
    assert any("there is no plan" in each for each in written.lost)
    sizes = custom(2, (Chunk(1e6, (0,), (1,)), Chunk(2e6, (0,), (1,))))
    sends = (Send(0, 0, "g0", "g1"), Send(0, 1, "g0", "g1"))
    other = document(Problem(mesh(2), sizes), plan=Schedule(sends, 60.0, 1))
    assert any("different sizes" in each for each in made(other)[1].lost)
    problem, plan = on_a_line()
    named = made(document(problem, plan=plan))[1]
    assert any("name the contributions that they carry" in each for each in named.lost)


def test_gpus_that_are_not_joined_are_refused():
    lonely = Topology("lonely", (device("gpu", "g0"),), ())
    with pytest.raises(FormatError, match="no two GPUs that are joined"):
        made(document(lonely))


@pytest.mark.parametrize(
    ("kind", "formulation"), [("all-reduce", "ring"), ("all-to-all", "pairwise")]
)
def test_plans_of_a_dgx_1_come_back_with_their_makespan(kind, formulation):
    """Counts 1 and 2 of 25 GB/s and no latency: nothing that the replay needs is lost."""
    topology = dgx_1v(alpha=0.0)
    result = solve(Problem(topology, make_collective(kind, 8, 8e6)), formulation)
    value, _ = made(document(result))
    problem, plan = plan_of(read(value))
    assert problem.collective == result.problem.collective
    assert {each.ends: each.bandwidth for each in problem.topology.links} == {
        each.ends: each.bandwidth for each in topology.links
    }
    assert simulate(problem, plan).makespan == pytest.approx(result.makespan)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_any_topology_is_counted_or_refused(topology):
    content = document(topology)
    value, written = made(content)
    found = read(value, direction="destination-major").document.topology
    assert len(found.ranks) == len(topology.ranks)
    direct = {
        (topology.rank[each.src], topology.rank[each.dst])
        for each in topology.links
        if each.src in topology.rank and each.dst in topology.rank
    }
    assert direct <= {(int(src[1:]), int(dst[1:])) for src, dst in found.link_index}
    assert written.lost


def valid(content: Document) -> bool:
    """Say whether a drawn plan is one; with 64 bytes and 10 ms of latency times are lost."""
    assert content.problem is not None
    assert content.plan is not None
    with suppress(ScheduleError):
        verify(content.problem, content.plan)
        return True
    return False


@settings(max_examples=60, deadline=None)
@given(planned().filter(valid))
def test_any_plan_is_written_as_sends_between_gpus(content):
    """All of what GPUs send is there once, and what is read is verified by the reader."""
    assert content.problem is not None
    assert isinstance(content.plan, Schedule)
    value, written = made(content)
    if value["msccl_type"] == "topology":
        assert any("the topology alone is written" in each for each in written.lost)
        return
    problem, plan = plan_of(read(value, direction="destination-major", chunk_size="1KB"))
    assert problem.collective.kind == content.problem.collective.kind
    assert len(problem.collective.chunks) == len(content.problem.collective.chunks)
    rank = content.topology.rank
    assert Counter((each.chunk, each.src, each.dst) for each in plan.sends) == Counter(
        (each.chunk, f"g{rank[each.src]}", f"g{rank[each.dst]}") for each in content.plan.sends
    )


def test_most_random_plans_are_written_whole():
    """The test above must not pass because everything is refused."""
    whole = []

    @settings(max_examples=30, deadline=None, database=None, derandomize=True)
    @given(planned().filter(valid))
    def count(content):
        whole.append(made(content)[0]["msccl_type"] == "algorithm")

    count()
    assert sum(whole) > len(whole) / 2


def test_all_reduce_of_one_address_is_one():
    """SCCL's Allreduce has one address for all ranks, and no part for each."""
    value = round_about(2)
    value["input_map"] = value["output_map"] = {"0": [0], "1": [0]}
    value["steps"] = [{"rounds": 1, "sends": [[0, 0, 1]]}, {"rounds": 1, "sends": [[0, 1, 0]]}]
    problem, _ = plan_of(read(value))
    assert problem.collective.kind == "all-reduce"
    assert problem.collective.chunks == all_reduce(2, 2e6).chunks[:1]


VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([round_about(3), HUB, LINE]), st.data())
def test_anything_is_read_or_refused_with_the_name_of_the_file(base, data):
    value, here = copy.deepcopy(base), None
    place: Any = value
    while isinstance(place, (dict, list)) and place:
        here, keys = place, sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        place = place[key]
        if data.draw(st.booleans()):
            break
    assert here is not None
    here[key] = data.draw(VALUES)
    told = "m.json: "
    asked = Request(name="m.json", settings={"direction": "destination-major"})
    try:
        READER.read(json.dumps(value).encode(), asked)
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("m.json: ")
