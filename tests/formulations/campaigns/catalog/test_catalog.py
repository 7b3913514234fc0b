"""The catalog: what is kept is found on every isomorphic cluster, and verified each time."""

import logging
import sqlite3
import zlib
from dataclasses import replace

import pytest

from benchmarks.shuffled import shuffled
from ccl.collective import Chunk, custom, make_collective
from ccl.errors import CatalogError, ProblemError
from ccl.problem import Problem, Window
from ccl.result import Status, Stop
from ccl.symmetry.canonical import canonical
from ccl.verify import verify
from formulations import solve
from formulations.campaigns import catalog as kept_plans
from formulations.campaigns.catalog import Catalog
from formulations.campaigns.catalog import tables as tables_module
from formulations.campaigns.catalog.relabelling import problem_bytes
from formulations.campaigns.catalog.tables import form_of
from formulations.solving import api
from gallery import open_cluster


@pytest.fixture
def catalog(tmp_path):
    return Catalog(tmp_path / "catalog.sqlite")


def asked(name="dgx-1v", kind="all-gather", size=1e6, **more):
    topology = open_cluster(name)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, **more))


def renamed(problem, seed=3):
    return replace(problem, topology=shuffled(problem.topology, seed=seed))


def test_a_result_comes_back_as_it_was(catalog):
    """On the same cluster everything is as before; the log says where it comes from."""
    result = solve(asked(), "ring")
    assert catalog.keep(result)
    found = catalog.find(asked())

    assert replace(found, log=result.log) == result
    assert found.log[-1].startswith("from the catalog: solved in ")


@pytest.mark.parametrize(
    ("kind", "method"),
    [("all-reduce", "list"), ("all-gather", "forestcoll"), ("all-to-all", "orbit-lp")],
)
def test_isomorphic_clusters_hit_and_the_plan_is_one_of_theirs(catalog, kind, method):
    """Schedules, forests and flows; what is found is about the cluster that is asked."""
    problem = asked("ndv2:hosts=2", kind)
    result = solve(problem, method)
    catalog.keep(result)
    other = renamed(problem)
    found = catalog.find(other, method)

    verify(other, found.plan)
    assert found.problem is other
    assert type(found.plan) is type(result.plan)
    assert found.bound.makespan == result.bound.makespan
    assert {each.host for each in other.topology.devices} != set(problem.topology.hosts)


def test_any_change_of_the_cluster_misses(catalog):
    problem = asked("ring")
    catalog.keep(solve(problem, "ring"))
    links = problem.topology.links
    wider = (replace(links[0], bandwidth=51.0), *links[1:])

    assert catalog.find(replace(problem, topology=replace(problem.topology, links=wider))) is None
    assert catalog.find(asked("ring", size=1e6 + 1)) is None
    assert catalog.find(asked("ring", chunks=2)) is None
    assert catalog.find(asked("ring", kind="all-reduce")) is None
    assert catalog.find(asked("ring")) is not None


def test_roots_of_one_orbit_share_a_plan(catalog):
    """The ends of a line are alike: its broadcast from one end, read from the other."""
    catalog.keep(solve(asked("line", "broadcast", root=0), "list"))
    found = catalog.find(asked("line", "broadcast", root=3))

    assert [(each.src, each.dst) for each in sorted(found.plan.sends)] == [
        ("g3", "g2"), ("g2", "g1"), ("g1", "g0"),
    ]  # fmt: skip
    assert catalog.find(asked("line", "broadcast", root=1)) is None


def test_demands_without_a_name_are_kept_too(catalog):
    ring = open_cluster("ring")
    pairs = Problem(ring, custom(8, [Chunk(3e5, (0,), (2, 3)), Chunk(7e5, (1,), (5,))]))
    turned = Problem(ring, custom(8, [Chunk(7e5, (2,), (6,)), Chunk(3e5, (1,), (3, 4))]))
    other = Problem(ring, custom(8, [Chunk(7e5, (2,), (6,)), Chunk(3e5, (1,), (3, 5))]))
    catalog.keep(solve(pairs, "list"))

    assert catalog.find(turned).makespan == catalog.find(pairs).makespan
    assert catalog.find(other) is None


def test_windows_are_kept_too(catalog):
    """A ring of 4 with one slow link: wherever it is, the plan is the same, turned."""
    slow = replace(asked("ring:gpus=4"), windows=(Window((("g0", "g1"),), 0.0, 9.0, 0.5),))
    moved = replace(slow, windows=(replace(slow.windows[0], links=(("g2", "g3"),)),))
    catalog.keep(solve(slow, "te-ccl-milp"))

    assert catalog.find(moved).makespan == catalog.find(slow).makespan
    assert catalog.find(replace(slow, windows=())) is None


def test_only_the_same_formulation_with_the_same_options_answers_unless_any_may(catalog):
    """Options that are left out have their defaults."""
    problem = asked()
    two = solve(problem, "ring", options={"directions": "both"})
    catalog.keep(solve(problem, "direct"))
    catalog.keep(two)

    assert catalog.find(problem, "ring") is None
    assert catalog.find(problem, "ring", options={"directions": "both", "rings": 1}) is not None
    assert catalog.find(problem, "direct", options={}).formulation == "direct"
    assert catalog.best(problem).makespan == min(
        each.makespan for each in catalog.entries(problem.topology)
    )
    with pytest.raises(ProblemError, match="no formulation is called 'rign'"):
        catalog.find(problem, "rign")


def test_a_better_plan_replaces_and_an_equal_one_adds_nothing(catalog):
    """Of one key there is one plan; the file does not grow when it is kept again."""
    problem = asked("ndv2:hosts=2")
    good = solve(problem, "list")
    worse = replace(solve(problem, "ring"), formulation="list", options=good.options)
    assert worse.makespan > good.makespan

    assert catalog.keep(worse)
    assert catalog.keep(good)
    before = catalog.path.stat().st_size
    for again in (worse, good, replace(good, problem=problem)):
        assert not catalog.keep(again)
    assert catalog.count() == 1
    assert catalog.find(problem, "list").makespan == good.makespan
    assert catalog.path.stat().st_size == before


def test_the_same_plan_with_a_larger_bound_replaces(catalog):
    result = solve(asked(), "list")
    lower = tuple(replace(each, makespan=each.makespan / 2) for each in result.bounds)
    catalog.keep(replace(result, bounds=lower, stop=Stop.PASSES))
    assert catalog.entries()[0].status is Status.FEASIBLE

    assert catalog.keep(result)
    assert catalog.find(asked(), "list").bound == result.bound


def tampered(catalog, change):
    """Change what is stored, as a fault of the disk or another program might."""
    connection = sqlite3.connect(catalog.path)
    ((content,),) = connection.execute("select content from plans").fetchall()
    with connection:
        connection.execute("update plans set content = ?", (change(content),))
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[:-9],
        lambda _: b"",
        lambda content: zlib.compress(zlib.decompress(content).replace(b'"bounds":[', b'"b":[')),
        # A send that is lost, and a bound that the plan beats.
        lambda content: zlib.compress(
            zlib.decompress(content).replace(b'"sends":[[0,0,["g0","g1"],1.0],', b'"sends":[')
        ),
        lambda content: zlib.compress(
            zlib.decompress(content).replace(b'"makespan":', b'"makespan":9')
        ),
    ],
)
def test_a_plan_that_no_longer_verifies_is_dropped_and_never_returned(catalog, change, caplog):
    result = solve(asked("ring"), "ring")
    catalog.keep(result)
    tampered(catalog, change)

    assert len(catalog.faults()) == 1
    with caplog.at_level(logging.WARNING):
        assert catalog.find(asked("ring")) is None
    assert "is dropped" in caplog.text
    assert catalog.count() == 0
    assert catalog.faults() == ()


def test_the_next_best_takes_the_place_of_what_is_dropped(catalog):
    problem = asked()
    catalog.keep(solve(problem, "list"))
    tampered(catalog, lambda content: content[:-4])
    catalog.keep(solve(problem, "ring"))

    assert catalog.best(problem).formulation == "ring"


def test_solving_with_a_catalog_solves_once(catalog, monkeypatch):
    solves = []

    def counted(problem, formulation, **given):
        solves.append(formulation)
        return solve(problem, formulation, **given)

    monkeypatch.setattr(api, "solve", counted)
    problem = asked()
    first = kept_plans.solve(problem, "ring", catalog=catalog)
    again = kept_plans.solve(renamed(problem), "ring", catalog=catalog)
    kept_plans.solve(problem, "direct", catalog=catalog)

    assert solves == ["ring", "direct"]
    assert again.makespan == first.makespan
    best = kept_plans.solve(problem, "tree", catalog=catalog, any_method=True)
    assert best.formulation in {"ring", "direct"}
    assert solves == ["ring", "direct"]


def test_what_was_cut_short_answers_only_for_less_time(catalog):
    """A solve that was cut off after 5 s says nothing about 60 s, nor about no limit at all."""
    problem = asked("dgx-1v", "all-to-all")
    found = solve(problem, "direct")
    cut = replace(found, stop=Stop.TIME_LIMIT, solve_time=5.0)
    assert cut.status is not Status.OPTIMAL
    catalog.keep(cut, time_limit=5.0)

    def answer(**limits):
        return catalog.find(problem, "direct", enough=True, **limits)

    assert answer(time_limit=5.0) is not None
    assert answer(time_limit=60.0) is None
    assert answer() is None
    assert answer(gap=found.gap) is not None
    assert answer(gap=found.gap / 2) is None
    catalog.keep(replace(cut, solve_time=60.0), time_limit=60.0)
    assert answer(time_limit=60.0) is not None
    assert catalog.count() == 1


@pytest.mark.parametrize(("kind", "status"), [("all-gather", Status.WHOLE), ("broadcast", None)])
def test_plans_of_older_versions_answer_where_they_are_proved(catalog, kind, status):
    """Where a method keeps chunks whole, it is proved by a bound on such plans, too."""
    problem = asked("ring", kind)
    proved, other = solve(problem, "list"), solve(problem, "ring")
    assert proved.stop is Stop.PROVED is not other.stop
    assert status in (None, proved.status)
    catalog.keep_all([proved, other], version="0.0.1")

    assert catalog.find(problem, "list") is not None
    assert catalog.find(problem, "ring") is None
    assert catalog.best(problem).formulation == "list"
    assert {each.version for each in catalog.entries()} == {"0.0.1"}


def test_a_sketch_is_of_one_drawing(catalog):
    """It names devices, which mean nothing on a cluster where others are called so."""
    problem = asked("ndv2:hosts=2")
    sketch = {"relays": [], "without": [["g0", "g1"]]}
    result = replace(solve(problem, "list"), formulation="taccl", options={"sketch": sketch})
    catalog.keep(result)
    (entry,) = catalog.entries()
    other = renamed(problem)

    assert entry.options == {"sketch": sketch}
    catalog.keep(replace(solve(other, "list"), formulation="taccl", options={"sketch": sketch}))
    assert catalog.count() == 2


def test_lists_and_forgetting(catalog):
    for kind in ("all-gather", "all-reduce"):
        for method in ("ring", "direct"):
            catalog.keep(solve(asked("ring", kind), method))
    catalog.keep(solve(asked("dgx-1v"), "ring"))
    ring = shuffled(open_cluster("ring"), seed=5)

    assert catalog.count() == 5
    assert len(catalog.entries(ring)) == 4
    assert len(catalog.entries(ring, kind="all-reduce")) == 2
    assert [each.cluster for each in catalog.entries(formulation="ring")] == ["DGX-1V"] + [
        open_cluster("ring").name
    ] * 2
    assert catalog.forget(catalog.entries(ring)) == 4
    assert catalog.forget([99]) == 0
    (left,) = catalog.entries()
    assert catalog.load(left).problem == asked("dgx-1v")
    assert catalog.load(left, renamed(asked())).makespan == left.makespan
    assert catalog.load(99) is None


def test_what_is_no_catalog_is_left_alone(tmp_path):
    """A text, somebody else's database, a folder, a newer catalog: one sentence each."""
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, though long enough to have a header of one " * 20)
    with pytest.raises(CatalogError, match="cannot be used: file is not a database"):
        Catalog(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("create table plans (id)")
    connection.close()
    content = other.read_bytes()
    with pytest.raises(CatalogError, match="something else"):
        Catalog(other)
    assert other.read_bytes() == content
    with pytest.raises(CatalogError, match="cannot be used"):
        Catalog(tmp_path)
    with pytest.raises(CatalogError, match="no folder to lie in"):
        Catalog(text / "below" / "catalog.sqlite")


def test_newer_catalogs_are_refused_and_older_ones_brought_up(catalog, monkeypatch):
    """The version stands in the file; a migration adds to it and the plans stay."""
    catalog.keep(solve(asked(), "ring"))

    def second(connection):
        connection.exec_driver_sql("ALTER TABLE plans ADD COLUMN more TEXT")

    monkeypatch.setattr(tables_module, "MIGRATIONS", (*tables_module.MIGRATIONS, second))
    assert Catalog(catalog.path).best(asked()).formulation == "ring"
    columns = sqlite3.connect(catalog.path).execute("pragma table_info(plans)").fetchall()
    assert "more" in {each[1] for each in columns}
    monkeypatch.undo()
    newer = len(tables_module.MIGRATIONS) + 1
    with pytest.raises(CatalogError, match=f"has version {newer}"):
        Catalog(catalog.path)


def test_the_form_that_is_stored_is_the_form_that_is_asked(catalog):
    problem = asked("pcie-server")
    catalog.keep(solve(problem, "list"))
    other = renamed(problem)

    assert problem.topology.limits
    assert canonical(other.topology).digest == canonical(problem.topology).digest
    assert catalog.find(other).makespan == pytest.approx(catalog.find(problem).makespan)


def cut_in(problem, parts):
    return replace(problem, collective=problem.collective.cut(parts))


@pytest.mark.parametrize(
    "problem",
    [
        asked("ring:gpus=4"),
        asked("ring:gpus=4", "all-reduce"),
        asked("ring:gpus=4", "broadcast", root=2),
        Problem(
            open_cluster("ring:gpus=4"),
            custom(4, [Chunk(6e5, (0,), (1, 2)), Chunk(9e5, (1,), (3,), priority=2.0)]),
        ),
    ],
    ids=["all-gather", "all-reduce", "broadcast", "custom"],
)
def test_a_plan_that_cuts_is_found_again_where_chunks_are_automatic(catalog, problem):
    """It answers the problem in parts; the question is about its bytes."""
    result = replace(solve(cut_in(problem, 3), "list"), formulation="auto", options={})
    assert catalog.keep(result)
    custom_one = problem.collective.kind == "custom"
    # Its ranks have places of their own, which other names would move.
    found, other = catalog.find(problem), problem if custom_one else renamed(problem)
    there = catalog.find(other)

    assert found.problem == result.problem
    assert not found.problem.collective.whole
    assert (found.plan, found.makespan) == (result.plan, result.makespan)
    assert there.problem == cut_in(other, 3)
    verify(there.problem, there.plan)
    assert catalog.find(cut_in(problem, 2)).problem == result.problem
    (entry,) = catalog.entries()
    assert not entry.whole
    assert entry.chunks == (6 if custom_one else 3)
    assert catalog.load(entry).problem == result.problem


@pytest.mark.parametrize("parts", [1, 3])
def test_fixed_chunks_are_a_question_of_their_own(catalog, parts):
    """Neither of the two answers the other, though the plans are of equal problems."""
    free = cut_in(asked("ring:gpus=4"), parts)
    fixed = asked("ring:gpus=4", chunks=parts)
    assert free == fixed
    catalog.keep(solve(free, "list"))
    assert catalog.find(fixed) is None
    catalog.keep(solve(fixed, "ring"))
    found = catalog.find(fixed)

    assert found.formulation == "ring"
    assert found.problem.collective.whole
    assert catalog.find(free, "ring") is None
    assert catalog.find(asked("ring:gpus=4")).formulation == "list"
    assert catalog.find(asked("ring:gpus=4", chunks=2)) is None
    assert [each.whole for each in catalog.entries(formulation="ring")] == [True]
    assert len(catalog.family(free)) == 2


def test_of_an_automatic_question_there_is_one_plan_of_a_method(catalog):
    """In whatever parts: the fastest takes the place of the others."""
    problem = asked("ring")
    times = {}
    for parts in (1, 4, 2):
        result = solve(cut_in(problem, parts), "ring")
        times[parts] = result.makespan
        catalog.keep(result)
    (entry,) = catalog.entries()

    assert entry.makespan == min(times.values())
    assert entry.chunks == min(times, key=times.get)


def test_a_plan_of_unevenly_cut_sums_answers_the_question_of_its_bytes(catalog):
    """Chunks of an all-reduce are all alike: a plan may have six of them where ranks are four."""
    question = asked("ring:gpus=4", "all-reduce")
    kept = solve(question.cut_into(6), "list")
    catalog.keep(kept)
    catalog.keep(solve(question, "ring"))
    uneven, even = sorted(catalog.family(question), key=lambda entry: -entry.chunks)

    assert (uneven.chunks, even.chunks) == (6, 1)
    found = catalog.find(question, "list")
    assert len(found.problem.collective.chunks) == 6
    assert found.makespan == pytest.approx(kept.makespan)
    assert catalog.best(question).makespan == pytest.approx(min(kept.makespan, even.makespan))
    renumbered = catalog.load(uneven, renamed(question))
    assert renumbered.makespan == pytest.approx(kept.makespan)
    assert not catalog.faults()


def test_a_plan_in_parts_loads_on_a_cluster_named_otherwise(catalog):
    """As the tuner asks for it: in its chunks, given by their number."""
    catalog.keep(solve(cut_in(asked("ring"), 2), "list"))
    (entry,) = catalog.entries()
    given = renamed(asked("ring", chunks=entry.chunks))
    found = catalog.load(entry, given)

    assert found.problem == given
    assert not found.problem.collective.whole
    verify(found.problem, found.plan)


def test_what_auto_proves_for_whole_chunks_does_not_end_an_automatic_question(catalog):
    """Others may be faster in smaller parts; where chunks are fixed nothing is."""
    proved = solve(asked("ring"), "list")
    assert proved.status is Status.WHOLE
    short = replace(proved, formulation="auto", options={}, stop=Stop.TIME_LIMIT, solve_time=5.0)
    kept = replace(asked("ring", chunks=1), windows=())
    catalog.keep(short, time_limit=5.0)
    catalog.keep(replace(short, problem=kept, stop=Stop.GAP))

    def answer(problem, **limits):
        return catalog.find(problem, enough=True, **limits)

    assert answer(asked("ring"), time_limit=60.0) is None
    assert answer(asked("ring"), time_limit=60.0, gap=0.01) is None
    assert answer(asked("ring"), time_limit=5.0) is not None
    assert answer(kept, time_limit=60.0, gap=0.01) is not None


def as_it_was(catalog, problems):
    """Make the file what the first version wrote: the digest of chunks, one bound, `optimal`."""
    connection = sqlite3.connect(catalog.path)
    with connection:
        for problem in problems:
            form = canonical(problem.topology, problem.collective)
            plain = replace(problem, collective=replace(problem.collective, whole=False))
            connection.execute(
                "update questions set digest = ?, content = ? where digest = ?",
                (form.digest, problem_bytes(plain), form_of(problem).digest),
            )
        connection.execute(
            "update plans set bound = coalesce(whole_bound, bound), status = "
            "replace(replace(status, ' for whole chunks', ''), ' (steady state)', '')"
        )
        connection.execute("alter table questions drop column whole")
        for column in ("parts", "whole_bound", "chunk"):
            connection.execute(f"alter table plans drop column {column}")
        connection.execute("pragma user_version = 1")
    connection.close()


def test_a_catalog_of_the_first_version_is_brought_up(catalog):
    """One chunk per shard is automatic, more were asked for; a proof says of which plans it is."""
    one, four = asked("ring"), asked("ring", chunks=4)
    reduced, sent = asked("dgx-1v", "all-reduce"), asked("ring", "broadcast")
    results = [
        solve(one, "list"), solve(four, "list"), solve(reduced, "forestcoll"), solve(sent, "list"),
    ]  # fmt: skip
    catalog.keep_all(results)
    before = {each.number: each for each in catalog.entries()}
    as_it_was(catalog, [one, four, reduced, sent])
    again = Catalog(catalog.path)

    assert {each.number: each for each in again.entries()} == before
    assert {each.status for each in before.values()} >= {Status.WHOLE, Status.THROUGHPUT}
    assert again.faults() == ()
    for problem, result in zip((one, four, reduced, sent), results, strict=True):
        assert again.find(problem).makespan == result.makespan
    assert again.find(cut_in(one, 4)).problem == one
    assert again.find(four).problem.collective.whole
    assert Catalog(catalog.path).count() == 4
