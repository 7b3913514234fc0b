"""What a sweep is asked: lists and ranges, errors with their places, tasks with their keys."""

import msgspec
import pytest

from ccl.errors import CclError, FormatError, ProblemError
from ccl.serialization.documents import document, write_document
from formulations.campaigns.sweeps.spec import Candidate, read_spec
from formulations.campaigns.sweeps.tasks import (
    clusters_of,
    digest,
    made,
    sizes_of,
    tasks_of,
    texts_of,
    values_of,
)
from gallery import open_cluster

SPEC = {
    "clusters": ["dgx-1v", "torus:shape=[3x3,4x4]"],
    "collectives": ["all-gather", {"kind": "broadcast", "root": [0, 1]}],
    "sizes": ["1MB", "64KB..1MB x4"],
    "formulations": ["ring", {"name": "list", "options": {"passes": [5, 10]}}],
}


def test_lists_and_ranges_multiply():
    assert texts_of("a:n=[2..4],b=[x,y]") == tuple(
        f"a:n={n},b={b}" for n in (2, 3, 4) for b in "xy"
    )
    assert values_of(["2..16 x2", 3]) == (2, 4, 8, 16, 3)
    assert values_of("rail") == ("rail",)
    assert sizes_of(["1KB..1MB x10", 1000.0, "1KiB"]) == (1e3, 1024, 1e4, 1e5, 1e6)


def test_the_product_is_the_list_of_tasks():
    """3 clusters, 3 collectives with roots, 3 sizes (1 MB is named twice), 3 methods."""
    tasks = tasks_of(read_spec(SPEC))

    assert len(tasks) == 81
    assert len({each.key for each in tasks}) == 81
    assert (tasks[0].gpus, tasks[0].hosts, str(tasks[0].method)) == (8, 1, "ring")
    assert str(tasks[-1]) == "broadcast at 1 of 1 MB on torus:shape=4x4 by list:passes=10"


def test_keys_stay_and_change_with_what_a_row_depends_on():
    """A key is the same in another sweep; retries change no row."""
    small = {"clusters": "dgx-1v", "collectives": "all-gather", "sizes": 1e6}

    def key(**changes):
        return tasks_of(read_spec(small | changes))[0].key

    assert key(retries=5) == key(sizes=["1MB", "2MB"]) == key()
    others = [
        key(time_limit=9),
        key(gap=0.1),
        key(memory_limit="2GB"),
        key(sizes=2e6),
        key(chunks=2),
        key(formulations="list"),
        key(formulations="list:passes=7"),
        key(formulations="list", seed=1),
        key(clusters="dgx-a100"),
    ]
    assert len({key(), *others}) == 10


def test_the_same_question_under_two_names_is_one_task(tmp_path):
    path = tmp_path / "mine.json"
    write_document(path, document(open_cluster("dgx-1v")))
    spec = {"clusters": [str(path), "dgx-1v", open_cluster("dgx-1v")], "sizes": 1e6}

    [task] = tasks_of(read_spec(spec | {"collectives": "all-gather", "formulations": "ring"}))

    assert task.cluster == "mine.json"


def test_classes_of_links_change_by_factors():
    """Bandwidth and alpha of the links between hosts alone; 1 x 2 x 2 combinations."""
    change = {"of": "between hosts", "bandwidth": [1, 2], "alpha": [1, 0.5]}
    before = open_cluster("ndv2:hosts=2")

    found = clusters_of(msgspec.convert({"open": "ndv2:hosts=2", "links": [change]}, Candidate))

    assert [each.label.partition(" with ")[2] for each in found] == [
        "",
        "between hosts alpha x0.5",
        "between hosts bandwidth x2",
        "between hosts bandwidth x2, alpha x0.5",
    ]
    after = found[3].topology
    for old, new in zip(before.links, after.links, strict=True):
        hosts = {before.device(each).host for each in old.ends}
        crosses = len(hosts) > 1 or hosts == {None}
        assert new.bandwidth == old.bandwidth * (2 if crosses else 1)
        assert new.alpha == old.alpha * (0.5 if crosses else 1)
    assert any(
        old.bandwidth != new.bandwidth for old, new in zip(before.links, after.links, strict=True)
    )
    assert digest(made(found[3].source)) == digest(after) != digest(before)


def test_a_combination_that_does_not_exist_is_a_row_and_no_error():
    """A single MI250 has no links between hosts; two have."""
    links = [{"of": "between hosts", "bandwidth": 2}]
    spec = SPEC | {"clusters": {"open": "mi250", "vary": {"hosts": [1, 2]}, "links": links}}

    tasks = tasks_of(read_spec(spec))

    assert len(tasks) == 54
    assert sum("no links of 'between hosts'" in each.why_not for each in tasks) == 27


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clusters": []}, "at clusters: there is none"),
        ({"clusters": "dgx-a10"}, "did you mean dgx-a100"),
        ({"clusters": {"open": "dgx-1v", "vari": {}}}, "at clusters[0]: object contains unknown"),
        ({"clusters": {"open": "nowhere.json"}}, "nowhere.json cannot be read"),
        ({"clusters": {"open": "dgx-1v", "links": [{"bandwidth": 0}]}}, "times 0; give more than"),
        ({"clusters": {"open": "mi250:hosts=1", "links": [{"of": "Foo", "alpha": 2}]}}, "'Foo'"),
        ({"clusters": {}}, "neither of open and topology"),
        ({"collectives": "all-gathr"}, "'all-gathr' is not one to sweep over"),
        ({"sizes": "1MB..1GB"}, "has no factor"),
        ({"sizes": "-1"}, "-1"),
        ({"formulations": "rings"}, "rings"),
        ({"formulations": {"name": "list", "options": {"passes": "many"}}}, "passes is 'many'"),
        ({"time_limit": 0}, "at time_limit: it is 0 s; give more than 0 s"),
        ({"memory_limit": "4 apples"}, "at memory_limit: size '4 apples'"),
        ({"retries": 1000}, "at retries: it is 1000; give 0 to 100"),
        ({"chunks": [1, 0]}, "at chunks: it is 0; give 1 or more"),
        ({"sizes": "1..1000000 x1.00001", "chunks": list(range(1, 999))}, "values; give fewer"),
    ],
)
def test_an_error_is_one_sentence_that_names_the_place(changes, words):
    with pytest.raises(CclError) as caught:
        tasks_of(read_spec(SPEC | changes))

    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_yaml_says_where(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("clusters: [dgx-1v\nsizes: 1MB\n", "utf-8")

    with pytest.raises(FormatError, match=r"bad\.yaml, line 2, column 6"):
        read_spec(path)


def test_too_many_tasks_are_refused_before_they_are_made():
    with pytest.raises(ProblemError, match="make it at most 1,000,000"):
        tasks_of(read_spec(SPEC | {"sizes": "1..9999 x1.01", "chunks": list(range(1, 9999))}))
