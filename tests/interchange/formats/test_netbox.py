"""Inventories of NetBox."""

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from ccl.cabling import cabling_of
from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.topology import Topology, device, duplex
from gallery import open_cluster
from interchange.formats.catalogue import reader, recognised, writer
from interchange.formats.format import NoOptions, Question, Request

SAMPLES = Path(__file__).parent / "samples"
READ, WRITE = reader("netbox").read, writer("netbox").write


def read(value, **settings):
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return READ(content, Request(name="box.json", settings=settings))


def table(written, name):
    return list(csv.DictReader(io.StringIO(written.files[name].decode())))


def test_a_cluster_comes_back_with_its_boxes_and_cables():
    """Two DGX H100 on rails with a spine: GPUs keep their places, each cable its ends and GB/s."""
    before = open_cluster("dgx-h100:hosts=2")
    found = read(WRITE(document(before), NoOptions()).files["netbox.json"])
    after = found.document.topology

    assert [each.kind for each in after.devices if each.kind == "gpu"] == ["gpu"] * 16
    assert after.link("rail3", "h1/gpu3").bandwidth == 50.0
    assert after.link("spine", "rail3") == before.link("spine", "rail3") or (
        after.link("spine", "rail3").count == before.link("spine", "rail3").count == 2
    )
    one, other = (
        sorted((c.first.box, c.first.port, c.second.box, c.second.port) for c in made.cables)
        for made in (cabling_of(before), cabling_of(after))
    )
    assert one == other
    assert found.report.taken == ("16 GPUs, 11 devices and 32 cables",)
    assert "450 GB/s one way" in found.report.assumed[0]


def test_what_is_written_is_what_the_bulk_import_takes():
    """Every cable ends at an interface of its device's type, each at most once."""
    written = WRITE(document(open_cluster("dgx-h100:hosts=2")), NoOptions())
    types = {
        each["model"]: each for each in yaml.safe_load_all(written.files["2-device-types.yaml"])
    }
    devices = {row["name"]: row for row in table(written, "5-devices.csv")}
    cables = table(written, "6-cables.csv")

    assert list(cables[0]) == [
        *("side_a_device", "side_a_type", "side_a_name"),
        *("side_b_device", "side_b_type", "side_b_name"),
        *("type", "status", "label", "length", "length_unit"),
    ]
    assert {"name", "role", "manufacturer", "device_type", "status", "site"} == set(devices["h0"])
    assert all({"manufacturer", "model", "slug"} <= each.keys() for each in types.values())
    assert devices["h0"]["device_type"] == devices["h1"]["device_type"]
    ends = [(row[f"side_{s}_device"], row[f"side_{s}_name"]) for row in cables for s in "ab"]
    assert len(set(ends)) == len(ends) == 64
    for box, port in ends:
        ports = {each["name"] for each in types[devices[box]["device_type"]]["interfaces"]}
        assert port in ports
    roles = {row["name"] for row in table(written, "3-device-roles.csv")}
    assert {row["role"] for row in devices.values()} <= roles
    assert "latencies" in written.lost


API = json.loads((SAMPLES / "netbox_rest.json").read_text("utf-8"))


def test_answers_of_the_rest_api_are_read():
    """Two ports of a node of four GPUs: the first is at GPU 0, the second at GPU 2."""
    with pytest.raises(Question, match="how many GPUs 2 devices such as 'node-1' have") as asked:
        read(API)
    assert asked.value.key == "gpus"
    found = read(API, gpus="4", bandwidth="25", alpha="2")
    topology = found.document.topology

    assert len(topology.ranks) == 8
    assert topology.link("node-1/gpu0", "leaf-1").bandwidth == 25.0
    assert topology.link("node-1/gpu2", "leaf-1").alpha == 2.0
    assert topology.device("leaf-1").kind == "switch"
    assert found.report.left_out == (
        "1 cable that end elsewhere than at interfaces of two devices",
    )
    assert "2 cables of no known type: 25 GB/s one way" in found.report.assumed


CSV = (SAMPLES / "netbox_cables.csv").read_bytes()


def test_a_table_of_cables_alone_is_read_by_names():
    assert recognised(CSV).name == recognised(json.dumps(API).encode()).name == "netbox"
    found = read(CSV, gpus="1")

    assert found.document.topology.ranks == ("gpu-a", "gpu-b")
    assert found.document.topology.device("leaf1").kind == "switch"
    assert "1 device such as leaf1 are switches, as their names say" in found.report.assumed


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"devices": 1, "cables": []}, "devices is no list of objects"),
        ({"devices": [{"name": ""}], "cables": []}, "there without a name"),
        ({"devices": [{"name": "s", "role": "switch"}] * 2, "cables": []}, "'s' is there twice"),
        (
            {
                "devices": [{"name": "s", "role": "switch"}],
                "cables": [
                    {
                        "side_a_device": "s",
                        "side_a_name": "1",
                        "side_b_device": "t",
                        "side_b_name": "2",
                    }
                ],
            },
            "ends at 't', which is not among the devices",
        ),
        (CSV.replace(b"eth0", b""), "no side_b_name; give one in each row"),
        (CSV + b'"x', "it is not CSV"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(value, sentence):
    with pytest.raises(FormatError, match=f"^box.json: .*{sentence}"):
        read(value, gpus="1")


def test_what_netbox_cannot_hold_is_refused():
    pair = (device("gpu", "a"), device("gpu", "b" * 65))
    with pytest.raises(FormatError, match="65 signs; NetBox takes names of 64"):
        WRITE(document(Topology("t", pair, duplex("a", "b" * 65, bandwidth=1.0))), NoOptions())
