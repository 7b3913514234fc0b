"""``lstopo --of xml`` becomes the PCIe tree of one host. GB/s one way."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import all_gather
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from formulations import solve
from interchange.formats.catalogue import reader, readers
from interchange.formats.format import Request

BOX = (Path(__file__).parent / "samples/hwloc_two_packages.xml").read_bytes()
MB = 1e6

GPU = '<object type="PCIDev" pci_busid="{0}" pci_type="0302 [10de:0001] [10de:0] a1"{1}/>'


def read(content, **said):
    return reader("hwloc").read(content, Request(name="box.xml", settings=said))


def topology(content, **said):
    return read(content, **said).document.topology


def machine(*inside, version="2.0"):
    top = f'<object type="Machine">{"".join(inside)}</object>'
    return f'<topology version="{version}">{top}</topology>'.encode()


def pairs(made):
    return {frozenset(link.ends): link.bandwidth for link in made.links}


def test_packages_and_switches_are_switches_and_chains_of_bridges_are_links():
    """A switch of 15.75 GB/s upwards holds GPU and adapter; a GPU is alone on the other package.

    The lesser speed of a chain counts. NVML's numbers order the GPUs, so the second package's is
    the first; its speed is not told, so it is that of PCIe 4.
    """
    found = read(BOX)
    made = found.document.topology

    assert pairs(made) == {
        frozenset({"gpu1", "pcie0"}): 31.507692,
        frozenset({"mlx5_0", "pcie0"}): 31.507692,
        frozenset({"pcie0", "cpu0"}): 15.753846,
        frozenset({"gpu0", "cpu1"}): 31.5,
        frozenset({"cpu0", "cpu1"}): 16.0,
    }
    assert {each.name: each.kind for each in made.devices} == {
        "gpu0": "gpu",
        "gpu1": "gpu",
        "cpu0": "switch",
        "cpu1": "switch",
        "pcie0": "switch",
        "mlx5_0": "nic",
    }
    assert made.hosts == ("box7",)
    assert made.link("pcie0", "cpu0").medium == "PCIe 3"
    told = " ".join(found.report.left_out)
    assert "4 bridges with one thing below" in told
    assert "1 display adapter of the board" in told
    assert "1 network adapter without RDMA" in told
    assert "NVLinkBandwidth" in told


def test_it_solves():
    made = topology(BOX)

    assert solve(Problem(made, all_gather(2, 2 * MB)), "list").makespan >= MB / 15.753846e3


def test_settings_say_what_is_drawn():
    """204.8 GB/s is what a memory reads and writes together."""
    with_memory = topology(BOX, memory="true")

    assert {each.kind for each in with_memory.devices} == {"gpu", "nic", "switch", "memory"}
    assert {each.bandwidth for each in with_memory.limits} == {204.8}
    assert with_memory.link("mem1", "cpu1").bandwidth == 204.8
    assert {e.name for e in topology(BOX, nics="all").devices if e.kind == "nic"} == {
        "mlx5_0",
        "eth0",
    }
    assert all(each.kind != "nic" for each in topology(BOX, nics="none").devices)
    fast = topology(BOX, speeds="pcie", pcie="5", sockets="44")
    assert set(pairs(fast).values()) == {63.0, 44.0}


def test_an_adapter_that_is_left_out_leaves_no_switch_for_one_gpu():
    """Without its adapter the switch joins nothing: the GPU's link has the chain's least speed."""
    made = topology(BOX, nics="none")

    assert "pcie0" not in made.index
    assert made.link("gpu1", "cpu0").bandwidth == 15.753846


def test_objects_of_hwloc_1_and_3_are_read():
    """Socket in NUMANode in version 1; in version 3 a type of several bits, and nvml as a name."""
    nvml = GPU.format("0000:81:00.0", "").replace(
        "/>", '><object type="OSDev" name="nvml0" osdev_type="12"/></object>'
    )
    adapter = (
        '<object type="PCIDev" pci_type="0200 [15b3:0] [15b3:0] 00"><object type="OSDev" '
        'name="mlx5_3" osdev_type="32"/></object>'
    )
    socket = '<object type="NUMANode"><object type="Socket" os_index="0">{}</object></object>'
    first = topology(machine(socket.format(GPU.format("a", "")), version="1.0"))
    third = topology(machine(f'<object type="Package" os_index="0">{nvml}{adapter}</object>'))

    assert set(pairs(first)) == {frozenset({"gpu0", "cpu0"})}
    assert set(pairs(third)) == {frozenset({"gpu0", "cpu0"}), frozenset({"mlx5_3", "cpu0"})}


def test_three_packages_meet_at_a_switch_and_a_machine_without_any_is_one():
    package = '<object type="Package" os_index="{0}">' + GPU + "</object>"
    three = topology(machine(*(package.format(i, "") for i in range(3))))
    loose = topology(machine(GPU.format("a", ""), GPU.format("b", "")))

    assert {frozenset({f"cpu{i}", "sockets0"}) for i in range(3)} < set(pairs(three))
    assert set(pairs(loose)) == {frozenset({f"gpu{i}", "cpu0"}) for i in range(2)}


def test_amd_gpus_are_ordered_by_rocm_smi_and_else_by_their_address():
    """0380 is an AMD GPU, 1200 a processing accelerator."""
    one = (
        '<object type="PCIDev" pci_busid="{}" pci_type="{} [1002:0] [1002:0] 00" '
        'pci_link_speed="{}">{}</object>'
    )
    smi = '<object type="OSDev" name="rsmi{}" subtype="RSMI"/>'
    ranked = topology(
        machine(
            one.format("1", "0380", 16, smi.format(1)), one.format("2", "1200", 8, smi.format(0))
        )
    )
    plain = topology(machine(one.format("2", "0380", 16, ""), one.format("1", "1200", 8, "")))

    assert ranked.link("gpu0", "cpu0").bandwidth == 8
    assert plain.link("gpu0", "cpu0").bandwidth == 8


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (machine(), "box.xml: it has no GPU"),
        (b"<topology/>", "box.xml: it is no <topology> with an <object>"),
        (
            machine(GPU.format("a", ' pci_link_speed="x"')),
            "box.xml: line 1: <object pci_link_speed",
        ),
        (
            machine(GPU.format("a", ' pci_link_speed="-4"')),
            "box.xml: line 1: a pci_link_speed of -4",
        ),
        (machine(GPU.format("a", ' pci_link_speed="1e9"')), "box.xml: line 1: a pci_link_speed of"),
        (BOX[:-20], "box.xml: line 53"),
    ],
)
def test_what_is_wrong_is_told(content, told):
    with pytest.raises(FormatError) as error:
        read(content)
    assert str(error.value).startswith(told)


def test_it_is_recognised_by_its_own_reader_alone():
    assert [each.name for each in readers() if each.recognises(BOX)] == ["hwloc"]


def refusal(content):
    """Return what is said against a file; any other error is a bug."""
    try:
        read(content, memory="true", nics="all")
    except (FormatError, ProblemError) as error:
        return str(error)
    return "read"


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_whatever_is_done_to_a_file_is_read_or_refused_in_words(data):
    words = [b'type="GPU"', b'"0302', b'"1-1"', b'""', b'"nan"', b'"-1"', b'"OSDev"', b"mlx5_0"]
    found = [b'"Bridge"', b'"0-1"', b'"PCIDev"', b'"Package"', b'"0"', b'"31.507692"', b"eth0"]
    content = BOX
    for _ in range(data.draw(st.integers(1, 4))):
        old, new = data.draw(st.sampled_from(found)), data.draw(st.sampled_from(words))
        content = content.replace(old, new, data.draw(st.integers(1, 4)))
    assert refusal(content).startswith(("box.xml", "read"))


def test_adapters_without_a_name_are_numbered_and_too_many_are_refused():
    adapter = '<object type="PCIDev" pci_type="0207 [15b3:0]"/>'
    many = topology(machine(GPU.format("a", ""), adapter * 500))

    assert {each.name for each in many.devices if each.kind == "nic"} == {
        f"nic{i}" for i in range(500)
    }
    with pytest.raises(FormatError, match="it has 5,001 GPUs and adapters; a host is read up to"):
        read(machine(GPU.format("a", ""), adapter * 5000))
