"""Parts, floor and bills of clusters."""

import csv
import io
import math
import time
import zipfile
from collections import Counter
from itertools import pairwise

import pytest
from defusedxml import ElementTree

from ccl.errors import CclError, ProblemError
from ccl.topology import Topology, device, duplex
from gallery import open_cluster
from gallery.costs import Floor, Prices, Span, bill_of, read_parts
from gallery.costs.designs import clos
from gallery.costs.tables import bill_csv, bill_xlsx
from interchange.formats.machines.netbox import CABLE_FIELDS, cable_csv

SUPERPOD = "rail-optimised:units=4,unit_hosts=32,gpus=8,spines=16,trunk=2"
ONE_EACH = Floor(rack_gpus=1, tries=0)
"""A rack for each GPU."""


def counts(made):
    return {row.part: row.count for row in made.rows}


def test_a_file_of_ones_own_overrides_figures_and_rows(tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "parts:\n"
        "  switch-64: {dollars: {typical: 31000, high: 36000, source: quote, date: 2026-10-05}}\n"
        "  switch-128: null\n"
        "cables:\n"
        "  copper: {reach: 2}\n",
        "utf-8",
    )
    made, packaged = read_parts(own), read_parts()

    assert made.parts["switch-64"].dollars.span == Span(25000, 31000, 36000)
    assert made.parts["switch-64"].dollars.date == "2026-10-05"
    assert made.parts["switch-64"].watts == packaged.parts["switch-64"].watts
    assert "switch-128" not in made.parts
    assert made.cable_class(2.5, 50) == "multimode"
    assert packaged.cable_class(2.5, 50) == "copper"


FIGURE = {"low": 1, "typical": 2, "high": 3, "unit": "$ each", "source": "s", "date": "2026-01"}


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"part": {}}, "a table 'part'; there are parts and cables"),
        ({"parts": {"swich-64": {"title": "x"}}}, "no row 'swich-64'; did you mean switch-64"),
        ({"parts": {"copper": None}}, "copper is made of 'copper', which is no row of parts"),
        (
            {"parts": {"gpu": {"watts": {"low": 9e9}}}},
            r"gpu: low, typical and high are 9e\+09, 1275",
        ),
        (
            {"parts": {"gpu": {"dollars": {"typical": "x"}}}},
            "gpu, at dollars.typical: expected a n",
        ),
        ({"parts": {"gpu": {"dollars": {"unit": "EUR"}}}}, "gpu, at dollars.unit: invalid"),
        ({"parts": {"gpu": {"dollars": {"source": ""}}}}, "no source or no date; give both"),
        ({"parts": {"gpu": {"colour": 1}}}, "gpu, at the top: object contains unknown field"),
        ({"parts": {"big": {"title": "b", "ports": 9, "dollars": FIGURE}}}, "9 ports of 0 GB/s"),
        ({"parts": {"gpu": None}}, "the part gpu and one class of cables have to stay"),
        ({"cables": {"copper": {"reach": 0}}}, "copper: a reach of 0 m"),
        ({"cables": [1]}, r"cables is \[1\]; give rows by name"),
        ({}, "no tables; give parts or cables"),
    ],
)
def test_parts_that_make_no_sense_are_refused_in_a_sentence(own, sentence):
    with pytest.raises(CclError, match=sentence):
        read_parts(own)


def test_classes_of_cables_go_by_reach():
    """400 Gb/s: copper to 3 m, multimode to 50 m, single mode to 100 m, FR4 to 2 km."""
    reaches = {3: "copper", 3.1: "multimode", 50: "multimode", 51: "single-mode", 2000: "fr4"}

    assert {length: read_parts().cable_class(length, 50) for length in reaches} == reaches
    with pytest.raises(ProblemError, match="over 2,001 m; the longest reaches 2,000 m"):
        read_parts().cable_class(2001, 50)


def test_lengths_go_along_rows_and_across():
    """Rack 17 is the second of the second row: from rack 0 it is 0.6 m along and 2.4 m across."""
    lengths = Floor().lengths(32)

    assert lengths[0, 0] == 2.0
    assert lengths[0, 17] == pytest.approx(0.6 + 2.4 + 3.0)
    assert (lengths == lengths.T).all()


@pytest.mark.parametrize("name", ["ring:gpus=16", "torus:shape=16x16"])
def test_a_torus_folds(name):
    """Neighbours are two racks apart or less: 2 x 0.6 m along or 2 x 2.4 m across, and 3 m.

    In the order of the drawing the cables that close it go 15 racks back; all metres are the same,
    as a ring in a row passes each gap twice whatever its order.
    """
    made = bill_of(open_cluster(name), floor=ONE_EACH)
    reach = 3 + (1.2 if "ring" in name else 4.8)

    assert max(each.length for each in made.cables) == pytest.approx(reach)
    if "ring" in name:
        assert made.metres == pytest.approx(16 * 3 + 30 * 0.6)


def test_exchanges_shorten_a_random_network_and_a_seed_repeats_them():
    """No order of a drawing suits it; a fifth of the metres between racks go in a short search."""
    topology = open_cluster("random-regular:vertices=64,degree=4")
    drawn = bill_of(topology, floor=ONE_EACH)
    found = [bill_of(topology, floor=Floor(rack_gpus=1, tries=20, seed=seed)) for seed in (1, 1, 2)]

    assert found[0].metres < 0.8 * drawn.metres
    assert found[0].racks == found[1].racks != found[2].racks
    assert sorted(found[0].racks.values()) == sorted(drawn.racks.values())


def test_a_cable_between_two_gpus_costs_what_a_bill_says():
    """64 GPUs are two racks: of a ring all cables but two are copper, and two are fibre."""
    prices, topology = Prices(), open_cluster("ring:gpus=64,bandwidth=50")
    between, made = prices.between(64, 50.0), prices.bill(topology)

    assert sorted(made.classes.values()) == [2, 62]
    ring = math.fsum(between[i, (i + 1) % 64] for i in range(64))
    assert made.network_dollars.typical == pytest.approx(ring)
    assert prices.between(32, 50.0) is None  # one rack
    assert prices.between(64, 4 * prices.parts.fastest)[0, 63] == pytest.approx(
        4 * prices.between(64, prices.parts.fastest)[0, 63]
    )


def test_boxes_may_be_placed_for_dollars():
    """Metres come first by default; for dollars more cables are short enough for copper."""
    topology = open_cluster(SUPERPOD)
    metres, dollars = (
        bill_of(topology, floor=Floor(objective=objective)) for objective in ("metres", "dollars")
    )

    assert dollars.network_dollars.typical < metres.network_dollars.typical
    assert dollars.classes["copper"] > metres.classes["copper"]
    with pytest.raises(ProblemError, match="objective is 'kg'; give metres or dollars"):
        Floor(objective="kg")


def test_a_floor_out_of_range_is_refused():
    with pytest.raises(ProblemError, match="floor: rack_gpus is 0; give 1 or more"):
        Floor(rack_gpus=0)


def test_a_bill_adds_up_by_hand():
    """Two hosts of 8 on one switch: 16 cables of 3.6 m, 16 transceivers at cards, 8 of two at it.

    The switch stands beside the only rack of hosts. Dollars: 16 x 38,750 + 36,000 + 16 x 560 +
    8 x 850 + 16 x 60 + 57.6 m x 3; watts: 16 x 1,275 + 750 + 16 x 8 + 8 x 15.
    """
    made = bill_of(open_cluster("dgx-h100:hosts=2,fabric=flat"))

    assert counts(made) == {
        "gpu": 16,
        "switch-64": 1,
        "multimode-twin": 8,
        "multimode-single": 16,
        "fibre-ends": 16,
        "fibre": pytest.approx(57.6),
    }
    network = 36_000 + 16 * 560 + 8 * 850 + 16 * 60 + 57.6 * 3
    assert made.network_dollars.typical == pytest.approx(network)
    assert made.dollars.typical == pytest.approx(16 * 38_750 + network)
    assert made.watts.typical == pytest.approx(16 * 1275 + 750 + 16 * 8 + 8 * 15)
    assert made.dollars.low < made.dollars.typical < made.dollars.high
    assert made.classes == {"multimode": 16}
    assert all(row.source and row.date for row in made.rows)
    assert "not modelled" in made.left_out


def test_a_switch_of_many_ports_becomes_three_tiers():
    """16 ports of switches of 4: 8 leaves, 8 spines, 4 cores, 48 cables; no port is used twice."""
    four = {"parts": {"switch-64": {"ports": 4}, "switch-128": None}}
    made = bill_of(open_cluster("star:gpus=16"), read_parts(four))
    ends = [end for each in made.cables for end in (each.first, each.second)]
    used = Counter(end.box for end in ends if end.box in made.switches)

    assert len(made.switches) == sum(clos(16, 4).switches) == 20
    assert len(made.cables) == sum(clos(16, 4).links) == 48
    assert max(used.values()) == 4
    assert len({(end.box, end.port) for end in ends}) == len(ends)


def test_links_faster_than_any_cable_are_several():
    """200 GB/s are four cables of 400 Gb/s; 25 GB/s are one, and the bill says so."""
    gpus = [device("gpu", name) for name in "abc"]
    links = (*duplex("a", "b", bandwidth=200.0), *duplex("b", "c", bandwidth=25.0))
    made = bill_of(Topology("line", tuple(gpus), links))

    assert sorted(each.bandwidth for each in made.cables) == [25, 50, 50, 50, 50]
    assert any("1 link of more than 50 GB/s" in each for each in made.assumed)
    assert any("none as slow: 1 cable of 25 GB/s" in each for each in made.assumed)


def test_cables_of_1024_gpus_are_written_within_two_seconds():
    """Of the processor's time, as a test may not be alone on the machine."""
    topology = open_cluster(SUPERPOD)
    start = time.process_time()
    made = bill_of(topology)
    rows = ((e.label, e.first, e.second, e.type, e.length) for e in made.cables)
    content = cable_csv(rows)

    assert time.process_time() - start < 2
    table = list(csv.reader(io.StringIO(content)))
    assert table[0] == list(CABLE_FIELDS)
    assert len(table) == 2049
    assert math.isclose(sum(float(row[9]) for row in table[1:]), made.metres, abs_tol=10)


def workbook(content):
    """Return the rows of each sheet of a workbook, and whether there is a formula."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        texts = [
            "".join(each.itertext())
            for each in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        ]
        sheets = []
        for number in (1, 2, 3):
            root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{number}.xml"))
            assert root.find(f".//{space}f") is None
            sheets.append(
                [
                    [
                        texts[int(cell.findtext(f"{space}v"))]
                        if cell.get("t") == "s"
                        else float(cell.findtext(f"{space}v"))
                        for cell in row
                        if cell.findtext(f"{space}v") is not None
                    ]
                    for row in root.iter(f"{space}row")
                ]
            )
    return sheets


def test_csv_and_workbook_have_parts_sums_and_notes():
    """A name that a spreadsheet would compute stays a text."""
    gpus = tuple(device("gpu", name) for name in ("=1+1", "b"))
    made = bill_of(Topology("pair", gpus, duplex("=1+1", "b", bandwidth=50.0)))
    table = list(csv.reader(io.StringIO(bill_csv(made))))
    parts, cables, notes = workbook(bill_xlsx(made))

    assert [row[0] for row in table[1:4]] == ["gpu", "copper", "sum"]
    assert float(table[4][12]) == pytest.approx(made.dollars.typical)
    assert table[-1] == ["not modelled", made.left_out]
    assert [row[0] for row in parts] == ["part", "gpu", "copper", "sum", "sum"]
    assert cables[1][:6] == ["C00001", "=1+1", "p1", "b", "p1", 50]
    assert notes[-1] == ["not modelled", made.left_out]


def test_what_is_inside_boxes_has_no_cables():
    """NVLink through the backplane of a rack, and GPUs with routers in groups that are no boxes."""
    rack = bill_of(open_cluster("gb200-nvl72"))
    groups = bill_of(open_cluster("dragonfly"))

    assert rack.cables == ()
    assert any("72 pairs of devices are joined through a backplane" in e for e in rack.assumed)
    assert counts(groups)["switch-64"] == 20
    assert len(groups.cables) == 90


def test_all_racks_hold_what_they_may():
    """32 GPUs or 8 switches; racks are numbered without a gap."""
    made = bill_of(open_cluster(SUPERPOD))
    filled = Counter(made.racks[box] for box in made.racks if box not in made.switches)
    shelves = Counter(made.racks[box] for box in made.switches)

    assert set(filled.values()) == {4}
    assert max(shelves.values()) == 8
    assert filled.keys().isdisjoint(shelves)
    racks = sorted({*filled, *shelves})
    assert racks[0] == 0
    assert all(after == before + 1 for before, after in pairwise(racks))
