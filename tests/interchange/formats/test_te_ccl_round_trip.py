"""What is written as a schedule of TE-CCL reads as the same sends; nothing crashes the reader."""

import json
import random
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ccl.collective import all_gather, all_to_all, broadcast, gather, reduce_scatter, scatter
from ccl.errors import FormatError, ProblemError
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.simulate import simulate
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from formulations import solve
from interchange.formats.catalogue import reader, writer
from interchange.formats.format import Request
from interchange.formats.synthesizers.te_ccl import READER, WRITER
from tests.ccl.clusters import line, ring, star
from tests.ccl.planner import Planner, split, spread
from tests.interchange.formats.strategies import planned
from tests.interchange.formats.te_ccl import line_all_gather, read

MB = 1e6


def again(content):
    """Write a document and read it on the same cluster."""
    written = WRITER.write(content, WRITER.options())
    asked = Request(name="again.json", topology=content.topology)
    return READER.read(written.content, asked)


def in_order(sends):
    return sorted(sends, key=lambda send: send.epoch)


def same(content, imported):
    """Whether the plan is the same: its sends, its epochs and what the replay takes."""
    plan, back = content.plan, imported.document.plan
    assert in_order(back.sends) == in_order(plan.sends)
    assert back.epoch_duration == pytest.approx(plan.epoch_duration, rel=1e-12)
    verify(imported.document.problem, back)
    took = [simulate(each.problem, each.plan).makespan for each in (content, imported.document)]
    assert took[1] == pytest.approx(took[0], rel=1e-9)


def cluster(rng):
    """A ring of GPUs with chords and two switches, one of which copies; speeds differ."""
    names = [f"g{rank}" for rank in range(rng.randint(2, 5))]
    pairs = set(zip(names, names[1:] + names[:1], strict=True))
    pairs |= {(a, b) for a in names for b in names if a != b and rng.random() < 0.3}
    for switch in ("s", "t"):
        some = [name for name in names if rng.random() < 0.6]
        pairs |= {ends for name in some for ends in ((name, switch), (switch, name))}
    pairs |= {("s", "t"), ("t", "s")}
    links = tuple(
        Link(*ends, rng.choice([10.0, 25.0, 50.0]), rng.choice([0.0, 0.7, 30.0]))
        for ends in sorted(pairs)
    )
    switches = (device("switch", "s", copies=True), device("switch", "t"))
    devices = [*(device("gpu", name) for name in names), *switches]
    rng.shuffle(devices)
    return Topology("random", tuple(devices), links)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_random_plans_come_back(seed):
    """Trees through switches or by way of stops at them, and parts of all-to-alls."""
    rng = random.Random(seed)
    topology = cluster(rng)
    ranks = len(topology.ranks)
    make = rng.choice([all_gather, all_to_all, broadcast, gather, scatter])
    problem = Problem(topology, make(ranks, ranks * MB, chunks=rng.randint(1, 2)))
    through = rng.random() < 0.5
    tasks = spread if problem.collective.copies or rng.random() < 0.3 else split
    planner = Planner(problem, rng.choice([7.0, 20.0, 45.0, 130.0]))
    plan = planner.plan(tasks(problem, rng, through=through))
    verify(problem, plan)

    content = document(problem, plan=plan)
    imported = again(content)
    same(content, imported)
    kept = (all_gather, all_to_all)
    assert make not in kept or imported.document.problem.collective == problem.collective


@settings(max_examples=20, deadline=None)
@given(planned())
def test_plans_on_odd_clusters_come_back(content):
    assume(not content.problem.collective.reduces)
    same(content, again(content))


@pytest.mark.parametrize(
    ("formulation", "problem"),
    [
        ("te-ccl-milp", Problem(star(3, copies=True), all_gather(3, 6 * MB, chunks=2))),
        ("te-ccl-lp", Problem(line(4, alpha=0.7), all_to_all(4, 4 * MB))),
    ],
)
def test_what_our_own_models_find_comes_back(formulation, problem):
    result = solve(problem, formulation)
    content = document(result)

    imported = again(content)
    same(content, imported)
    written = json.loads(WRITER.write(content, WRITER.options()).content)
    assert written["Solver_Time"] == result.solve_time
    whole = written["3-Epochs_Required"] * result.plan.epoch_duration
    assert written["4-Collective_Finish_Time"] == pytest.approx(whole * 1e-6)
    assert result.makespan <= whole * (1 + 1e-9)


def test_every_figure_is_of_the_plan():
    """On a line of 3 chunks of 1 MB move 2 epochs of 100 µs: 3 MB in 200 µs are 15 GB/s."""
    topology, value = line_all_gather(3)
    content = read(value, topology).document
    written = WRITER.write(content, WRITER.options())
    made = json.loads(written.content)

    assert made["1-Epoch_Duration"] == made["2-Expected_Epoch_Duration"] == pytest.approx(1e-4)
    assert made["3-Epochs_Required"] == 2
    assert made["4-Collective_Finish_Time"] == pytest.approx(2e-4)
    assert made["5-Algo_Bandwidth"] == pytest.approx(15)
    assert made["6-Demand_Met"]["GPU 2"]["GPU 0"]["Chunk 0"] == pytest.approx(2e-4)
    assert made["6-Demand_Met"]["GPU 1"]["GPU 0"]["Chunk 0"] == pytest.approx(1e-4)
    assert sorted(made["7-Flows"]) == sorted(value["7-Flows"])
    path = made["8-Chunk paths"]["Demand at 2 for chunk 0 from 0 met by epoch 1"]
    assert path == ["0->1 in epoch 0", "1->2 in epoch 1"]
    assert "numbers 0 to 2" in written.lost[0]


def test_ways_of_amounts_are_written():
    """Halves that share the first link are written with it twice, each with its own amount."""
    topology = line(3)
    problem = Problem(topology, all_to_all(3, 3 * MB))
    plan = Planner(problem, 20.0).plan(split(problem, random.Random(1), through=False))
    made = json.loads(WRITER.write(document(problem, plan=plan), WRITER.options()).content)

    ways = made["8-Chunk paths"]
    assert len(ways) == 6
    for key, those in ways.items():
        amounts = [float(way[-1][1].split(" with volume ")[1].split()[0]) for way in those]
        assert sum(amounts) == pytest.approx(1), key


def test_what_has_no_epochs_or_is_a_sum_is_refused():
    problem = Problem(ring(3), reduce_scatter(3, 3 * MB))
    plan = Planner(problem, 20.0).plan(spread(problem, random.Random(1), through=False))
    with pytest.raises(FormatError, match="is a sum"):
        WRITER.write(document(problem, plan=plan), WRITER.options())
    trees = tuple(
        Tree(r, ((f"g{r}", f"g{(r + 1) % 3}"), (f"g{(r + 1) % 3}", f"g{(r + 2) % 3}")), Fraction(1))
        for r in range(3)
    )
    gathered = Problem(ring(3), all_gather(3, 3 * MB))
    with pytest.raises(FormatError, match="a forest has no epochs"):
        WRITER.write(document(gathered, plan=Forest(trees)), WRITER.options())


def test_the_catalogue_has_both():
    assert {reader(name).title for name in ("te-ccl-input", "te-ccl-schedule")} == {
        writer(name).title for name in ("te-ccl-input", "te-ccl-schedule")
    }


ODD = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.sampled_from(("GPU 0", "GPU 9", "Chunk 0", "x")), st.integers())
)
NUMBERS = st.sampled_from((0, 1, 2, 3, 4, 7, 10**7, 99_999_999))
LINES = st.builds(
    "Chunk {} from {} traveled over {}->{} in epoch {}{}".format,
    *([NUMBERS] * 5),
    st.sampled_from(("", " via switches 1", " via switches 2 -> 3", " via switches 0->0->0")),
) | st.builds(
    "Chunk {} from {} traveled over {}->{} with volume {} in epoch {}".format,
    *([NUMBERS] * 4),
    st.sampled_from(("0", "0.5", "1e-5", "1.0", "2", "1e", "0.0000001", "1e300")),
    NUMBERS,
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            (
                *("1-Epoch_Duration", "3-Epochs_Required", "4-Collective_Finish_Time"),
                *("5-Algo_Bandwidth", "6-Demand_Met", "7-Flows", "8-Chunk paths", "9-Chunk_Size"),
            )
        ),
        ODD,
        max_size=3,
    ),
    st.lists(LINES, max_size=4),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
)
def test_whatever_stands_in_it_it_is_read_or_refused(odd, lines, kept, known, lenient):
    topology, value = line_all_gather(3)
    flows = [*value["7-Flows"][:kept], *lines]
    changed = {**value, "7-Flows": flows, **odd}
    told = "plan.json: "
    try:
        read(changed, topology if known else None, lenient=str(lenient))
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("plan.json: ")


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3000), st.binary(max_size=4))
def test_broken_bytes_are_refused(place, some):
    content = bytearray(json.dumps(line_all_gather(3)[1]).encode())
    content[place : place + len(some)] = some
    READER.recognises(bytes(content))
    told = "x.json: "
    try:
        READER.read(bytes(content), Request(name="x.json"))
    except (FormatError, ProblemError) as error:
        told = str(error)
    assert told.startswith("x.json: ")
