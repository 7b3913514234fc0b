"""What the gallery offers and how it answers to names."""

import pytest

import gallery
from ccl.collective import all_gather
from ccl.errors import ProblemError
from ccl.problem import Problem
from gallery.entry import MEANINGS

ENTRIES = gallery.catalog()
ONE_WAY = {"te-ccl-2a", "te-ccl-2b", "te-ccl-2c"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_opens_by_name_and_says_where_it_comes_from(entry):
    topology = gallery.open_cluster(entry.name)

    assert topology == entry.make()
    assert entry.source
    assert entry.summary.endswith(".")
    assert entry.figures
    assert all(figure.value[0].isdigit() or figure.value[0] == "m" for figure in entry.figures)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_gpu_reaches_every_other_where_links_go_both_ways(entry):
    """A problem refuses destinations that cannot be reached."""
    topology = gallery.open_cluster(entry.name)
    collective = all_gather(len(topology.ranks), 1e6)

    if entry.name in ONE_WAY:
        with pytest.raises(ProblemError, match="cannot be reached"):
            Problem(topology, collective)
    else:
        assert Problem(topology, collective).topology == topology


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_defaults_written_out_open_the_same(entry):
    def written(value):
        return "x".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()

    arguments = ",".join(f"{each.name}={written(each.default)}" for each in entry.parameters)

    assert gallery.open_cluster(f"{entry.name}:{arguments}") == gallery.open_cluster(entry.name)
    assert all(each.meaning == MEANINGS[each.name] for each in entry.parameters)


def test_names_differ_and_families_stand_together():
    families = [entry.family for entry in ENTRIES]

    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert set(families) == {
        "Shapes", "Direct networks", "NVIDIA", "AMD", "Google", "Networks", "Servers", "Papers",
    }  # fmt: skip
    assert families == sorted(families, key=families.index)


def test_parameters_are_typed_as_in_the_signature():
    found = {each.name: each for each in gallery.entry("dgx-a100").parameters}

    assert found["hosts"].kind == "int"
    assert found["hosts"].default == 1
    assert found["alpha"].kind == "float"
    assert found["planned"].kind == "bool"
    assert found["fabric"].choices == ("rail", "rail-only", "flat")
    assert gallery.entry("torus").parameters[0].kind == "shape"


def test_arguments_reach_the_function():
    topology = gallery.open_cluster("ring: gpus=5, bandwidth=12.5, alpha=0")

    assert len(topology.ranks) == 5
    assert {(link.bandwidth, link.alpha) for link in topology.links} == {(12.5, 0.0)}
    assert gallery.open_cluster("DGX-1V:planned=yes").link("g0", "g1").bandwidth == 40


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("rnig", "the gallery has no cluster called 'rnig'; did you mean ring"),
        ("zzz", "there are ring, line"),
        ("ring:gpu=8", "ring takes no argument 'gpu'; did you mean gpus"),
        ("ring:zzz=8", "it takes gpus, bandwidth, alpha"),
        ("ring:gpus", "ring: gpus has no value; write gpus=8"),
        ("ring:gpus=", "ring: gpus= is not a whole number, such as gpus=8"),
        ("ring:gpus=a", "ring: gpus=a is not a whole number, such as gpus=8"),
        ("ring:gpus=4,gpus=5", "ring: gpus is given twice; give it once"),
        ("ring:gpus=2", "gpus of a ring must be from 3 to 16,384, got 2"),
        ("ring:gpus=1000000000", "must be from 3 to 16,384, got 1,000,000,000"),
        ("ring:bandwidth=-1", "needs a positive bandwidth, got -1.0 GB/s"),
        ("ring:alpha=nan", "needs an alpha of zero or more, got nan µs"),
        ("torus:shape=4xx", "torus: shape=4xx is not whole numbers joined by x, such as shape=4x4"),
        ("torus:shape=0x4", "shape 0x4 is not one; give up to 6 whole numbers, such as 4x4"),
        ("torus:shape=99999x99999", "GPUs of shape 99999x99999 must be from 2 to 16,384"),
        ("dgx-a100:fabric=x", "dgx-a100: fabric=x is not rail or rail-only or flat"),
        ("dgx-1v:planned=maybe", "dgx-1v: planned=maybe is not true or false"),
        ("dgx-2-te-ccl:hosts=3", "hosts of DGX-2 as in TE-CCL must be from 1 to 2, got 3"),
        ("tpu-v4:shape=4x4", "shape 4x4 is no TPU v4 slice; give three sides, such as 4x4x4"),
        ("fat-tree:radix=5", "radix of a fat-tree must be even, got 5"),
        ("dragonfly:groups=10", "groups of a dragonfly must be from 2 to 9, got 10"),
    ],
)
def test_a_wrong_name_or_argument_is_answered_in_one_sentence(text, answer):
    with pytest.raises(ProblemError) as caught:
        gallery.open_cluster(text)

    assert answer in str(caught.value)
    assert "\n" not in str(caught.value)
