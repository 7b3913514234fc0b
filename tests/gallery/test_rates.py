"""All-gather rates of clusters that papers evaluate, by cuts: the drawings are theirs."""

from fractions import Fraction

import pytest

import gallery
from ccl.errors import ProblemError
from tests.gallery.cuts import rate


@pytest.mark.parametrize(
    ("cluster", "seconds_per_gb"),
    [
        ("thesis-dgx-a100:hosts=1", Fraction(7, 300)),
        ("thesis-dgx-a100:hosts=2", Fraction(15, 325)),
        ("thesis-dgx-a100:hosts=4", Fraction(24, 200)),
        ("thesis-dgx-a100:hosts=8", Fraction(56, 200)),
        ("thesis-dgx-a100:hosts=1,used=no-nvlink", Fraction(7, 32)),
        ("thesis-dgx-a100:hosts=4,used=no-nvlink", Fraction(31, 32)),
        ("thesis-dgx-a100:hosts=1,used=all", Fraction(7, 332)),
        ("thesis-dgx-a100:hosts=2,used=all", Fraction(15, 332)),
        ("thesis-dgx-a100:hosts=4,used=all", Fraction(24, 200)),
    ],
)
def test_the_thesis_clusters_have_its_latencies(cluster, seconds_per_gb):
    """Tables 6.3 to 6.5: 0.0233, 0.0462, 0.12, 0.28; 0.219, 0.969; 0.0211, 0.0452, 0.12.

    One or two nodes are limited by what enters a GPU (300, 325, 32 or 332 GB/s), more by the 8
    ports of a node through which the shards of all others enter: 8 (N - 1) / (8 x 25).
    """
    assert rate(gallery.open_cluster(cluster)) == seconds_per_gb


@pytest.mark.parametrize(
    ("cluster", "algbw"),
    [
        ("dgx-a100", Fraction(2400, 7)),
        ("dgx-a100:hosts=2", Fraction(1040, 3)),
        ("dgx-a100:hosts=2,fabric=flat", Fraction(1040, 3)),
        ("dgx-a100:hosts=4,fabric=flat", Fraction(800, 3)),
        ("mi250", Fraction(2400, 7)),
        ("mi250:hosts=2", Fraction(5312, 15)),
    ],
)
def test_forestcoll_has_the_same_optimal_algbw(cluster, algbw):
    """342.857, 346.667, 266.667; MI250 342.857 and 354.133 GB/s, its section 4.5.

    Two MI250: the two dies of a package have 14 links of 50 less 8 between them, so 300 GB/s to
    other packages, and 32 to the switch; 30 of 32 shards enter: 332 x 32 / 30.
    """
    topology = gallery.open_cluster(cluster)

    assert len(topology.ranks) / rate(topology) == algbw


@pytest.mark.parametrize(
    ("cluster", "seconds_per_gb"),
    [
        ("forestcoll-12", Fraction(4, 4)),
        ("forestcoll-12:hosts=4", Fraction(12, 4)),
        ("ring:gpus=8,bandwidth=10,chord_bandwidth=1", Fraction(7, 25)),
        ("star:gpus=6,bandwidth=1,wide=1,wide_bandwidth=10", Fraction(5)),
        ("star:gpus=8,bandwidth=1,wide=2,wide_bandwidth=4", Fraction(7)),
        ("torus:shape=4x4,bandwidth=1", Fraction(15, 4)),
        ("hypercube:dimension=4,bandwidth=1", Fraction(15, 4)),
        ("circulant:bandwidth=1", Fraction(15, 4)),
        ("twisted-torus:bandwidth=1", Fraction(15, 4)),
        ("hyperx:bandwidth=1", Fraction(15, 6)),
        ("slim-fly:bandwidth=1", Fraction(17, 5)),
        ("kautz:bandwidth=1", Fraction(11, 3)),
        ("de-bruijn:bandwidth=1", Fraction(11, 2)),
        ("random-regular:bandwidth=1", Fraction(15, 4)),
        ("hamming-mesh:bandwidth=1,network_bandwidth=1", Fraction(15, 4)),
        ("dragonfly-plus:bandwidth=1", Fraction(11)),
        ("rail-optimised:bandwidth=9,network_bandwidth=1", Fraction(12, 4)),
    ],
)
def test_small_clusters_are_limited_by_what_enters_a_box_or_a_gpu(cluster, seconds_per_gb):
    """Figure 12: the 4 (N - 1) shards of other boxes enter one over 4 links of 1 GB/s.

    Elsewhere it is a GPU: 2 x 10 + 5 x 1 into one of the ring of 8 with its chords, 1 into the
    narrowest of a star, 4 links into one of a torus or hypercube. A link of a GPU to itself is
    one less, in the de Bruijn network of 12 for four of them.
    """
    assert rate(gallery.open_cluster(cluster)) == seconds_per_gb


def test_the_all_gather_of_the_appendix_of_taccl_is_above_the_worst_cut():
    """Its four steps take 240 + 128 + 120 + 120 = 608 µs for two chunks of 1 MB a GPU.

    An odd GPU hears from its NVSwitch alone: 62 chunks of 8 µs, 496 µs.
    """
    cut = rate(gallery.open_cluster("taccl-c"))  # s for 1 GB from every GPU

    assert float(cut) * 2e-3 * 1e6 == pytest.approx(62 * 8)
    assert 62 * 8 < 240 + 128 + 120 + 120


def test_the_order_of_links_between_packages_does_not_change_two_mi250():
    """ForestColl's drawing has 4 links to the sibling and 3 to others, whichever these are."""
    topology = gallery.open_cluster("mi250:hosts=2")
    inside = {
        gpu: [link.count for link in topology.links_out[gpu] if link.dst != "fabric"]
        for gpu in topology.ranks
    }

    assert all(max(counts) == 4 and sum(counts) == 7 for counts in inside.values())


@pytest.mark.parametrize("one_way", [False, True])
def test_a_random_network_is_as_wide_in_as_out_and_the_same_for_a_seed(one_way):
    arguments = {"gpus": 12, "switches": 5, "degree": 3, "one_way": one_way}
    drawn = [gallery.entry("random").make(**arguments, seed=seed) for seed in (1, 1, 2)]

    assert drawn[0] == drawn[1]
    assert drawn[0].links != drawn[2].links
    for device in drawn[0].devices:
        out, into = drawn[0].links_out[device.name], drawn[0].links_in[device.name]
        assert sum(link.bandwidth for link in out) == sum(link.bandwidth for link in into)
    assert rate(drawn[0]) > 0


def test_random_links_go_both_ways_unless_told():
    both = gallery.open_cluster("random")
    single = gallery.open_cluster("random:one_way=true")

    assert all((dst, src) in both.link_index for src, dst in both.link_index)
    assert not all((dst, src) in single.link_index for src, dst in single.link_index)


@pytest.mark.parametrize(
    "wrong",
    ["star:wide=9", "random:degree=10", "random:gpus=2,switches=0", "forestcoll-12:hosts=0"],
)
def test_a_number_out_of_range_is_refused(wrong):
    with pytest.raises(ProblemError, match="must be from"):
        gallery.open_cluster(wrong)


def test_the_memory_of_the_thesis_has_no_limit_and_its_rails_no_spine():
    topology = gallery.open_cluster("thesis-dgx-a100:used=all")

    assert topology.limits == ()
    assert "spine" not in topology.index
    assert topology.device("mem0").copies
    assert not topology.device("mem0").reduces
