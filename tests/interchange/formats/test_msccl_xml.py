"""MSCCL XML: programs are written and read whole, what is wrong is refused with its line."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import make_collective
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.topology import Topology, device, duplex
from formulations import solve
from gallery import open_cluster
from interchange.formats.catalogue import read_content, reader, writer
from interchange.formats.format import Request
from interchange.formats.runtimes.msccl_xml import program_from_xml, program_to_xml
from interchange.formats.xml import parse_xml
from interchange.programs import Slot, Step
from interchange.programs.lint import lint
from tests.interchange.formats.strategies import planned
from tests.interchange.programs.programs import gathered, programs, summed

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "reduce")
READ = reader("msccl-xml")
WRITE = writer("msccl-xml")

RING = """\
<algo name="two" proto="LL" nchannels="1" nchunksperloop="2" ngpus="2" coll="allgather" inplace="0"
  outofplace="1" minBytes="4" maxBytes="4096">
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="0" deps="1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""  # noqa: E501


def read(text: str, **settings: str):
    return read_content(text.encode(), Request(name="x.xml", settings=settings))


@given(programs(), st.sampled_from(["msccl", "azure", "rccl"]))
def test_what_is_written_is_read_as_it_was(program, executor):
    assert program_from_xml(program_to_xml(program, executor).encode()) == program


def test_the_form_is_the_one_that_parsers_take():
    """One element a line, no declaration, unused places as compilers write them.

    Rank 0 sends its half to place 0 of rank 1's output, and receives rank 1's from its input.
    """
    steps = (Step("nop", after=(1, 0)), Step("s", Slot("input", 0), after=(1, 0)))
    program = gathered(2)
    ring, own = program.ranks[0].blocks
    sender = replace(program.ranks[0], blocks=(replace(ring, steps=(*steps, ring.steps[1])), own))
    text = program_to_xml(replace(program, ranks=(sender, program.ranks[1])))

    assert text.splitlines()[0] == (
        '<algo name="ring" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" '
        'coll="allgather" inplace="0" outofplace="1" minBytes="0" maxBytes="1099511627776">'
    )
    unused = 'srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="1" deps="0" hasdep="0"/>'
    assert text.splitlines()[3].strip() == f'<step s="0" type="nop" srcbuf="i" {unused}'
    used = 'srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0"/>'
    assert text.splitlines()[4].strip() == f'<step s="1" type="s" srcbuf="i" {used}'
    assert 'type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1"' in text.splitlines()[5]
    assert 'type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1"' in text
    assert text.count('hasdep="1"') == 1  # the copy, for which both wait


def test_executors_name_a_reduce_scatter_differently():
    program = replace(summed(2), collective="reduce-scatter")

    assert 'coll="reduce_scatter"' in program_to_xml(program, "msccl")
    assert 'coll="reducescatter"' in program_to_xml(program, "azure")
    assert 'coll="reducescatter"' in program_to_xml(program, "rccl")
    assert 'redop="sum"' in program_to_xml(program)
    assert "redop" not in program_to_xml(gathered(2))


def test_a_name_that_xml_cannot_say_is_refused():
    with pytest.raises(FormatError, match=r"the sign U\+0000"):
        program_to_xml(replace(gathered(2), name="a\0b"))


def test_a_file_becomes_a_program_and_a_plan():
    """Each rank sends its half of 4 KiB, the largest size, over 25 GB/s: 2,048 bytes in 0.08192 µs.

    Of n = 2 the bus bandwidth is half of 4,096 bytes over that time: 25 GB/s.
    """
    imported = read(RING)

    assert imported.program == program_from_xml(RING.encode())
    assert imported.program.protocol == "LL"
    assert imported.program.ranks[0].blocks[1].steps == (
        Step("cpy", Slot("input", 0), Slot("output", 0), after=(0, 1)),
    )
    assert imported.document.kind == "plan"
    assert imported.document.problem.collective == make_collective("all-gather", 2, 4096.0)
    told = "3 thread blocks and 6 steps on 1 channels, LL, 2 chunks"
    assert imported.report.taken == (
        f"a program of all-gather for 2 ranks: {told}",
        "a plan of 2 sends: 4 KiB in 0.08192 µs, 25 GB/s of bus bandwidth",
    )
    told = "one for each pair of ranks of which one sends to the other"
    assert imported.report.assumed == (
        f"2 links of 25 GB/s without latency, {told}",
        "a buffer of 4 KiB",
    )
    assert imported.report.left_out == ()
    assert lint(imported.program) == ()


def test_the_open_cluster_and_a_size_are_taken():
    """Half of 1 MB over 50 GB/s takes 10 µs, and the link's latency is 2 µs."""
    gpus = (device("gpu", "a"), device("gpu", "b"))
    cluster = Topology("pair", gpus, duplex("a", "b", bandwidth=50.0, alpha=2.0))
    imported = READ.read(
        RING.encode(), Request(name="x", topology=cluster, settings={"size": "1MB"})
    )

    assert imported.document.topology == cluster
    assert imported.report.assumed == ()
    assert "1 MB in 12 µs" in imported.report.taken[1]

    aside = Request(name="x", topology=cluster, settings={"topology": "mesh"})
    assert READ.read(RING.encode(), aside).document.topology != cluster


def test_a_cluster_of_other_ranks_is_refused():
    told = r"^x: the program is for 2 ranks and .* has 8 GPUs; .* or give mesh for the setting"
    with pytest.raises(FormatError, match=told):
        READ.read(RING.encode(), Request(name="x", topology=open_cluster("dgx-1v")))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"topology": "star"}, "the setting topology is 'star'; give open or mesh"),
        ({"topology": "open"}, "no cluster is open"),
        ({"size": "much"}, "size 'much' is not a number of bytes"),
        ({"root": "first"}, "the setting root is 'first'"),
        ({"root": "2"}, "the root is 2; ranks go from 0 to 1"),
    ],
)
def test_settings_that_are_none_are_refused(settings, told):
    with pytest.raises(FormatError, match=re.escape(told)):
        read(RING, **settings)


def test_what_a_file_does_not_say_is_assumed_and_told():
    text = re.sub(r'\n  outofplace="1" minBytes="4" maxBytes="4096"', "", RING)
    imported = read(text.replace("allgather", "broadcast"))

    assert imported.program.out_of_place
    assert not imported.program.in_place
    assert (imported.program.smallest, imported.program.largest) == (0, 2**27)
    assert "minBytes and maxBytes are missing: it is for 0 to 134,217,728 bytes" in (
        imported.report.assumed
    )
    assert "outofplace is 1, which the file does not say" in imported.report.assumed
    assert "the root is rank 0" in imported.report.assumed

    placed = read(text.replace('inplace="0"', 'inplace="1"')).program
    assert placed.in_place
    assert not placed.out_of_place


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("broadcast", "the root is rank 2, which alone receives nothing"),
        ("reduce", "the root is rank 2, which alone sends nothing"),
    ],
)
def test_a_root_that_is_not_said_is_found(kind, told):
    """A star of three GPUs, of which the last is the root; without `root`, as most files are."""
    topology = open_cluster("full-mesh:gpus=3")
    problem = Problem(topology, make_collective(kind, 3, 2.0**20, root=2))
    written = WRITE.write(document(solve(problem, "direct")), WRITE.options()).content
    imported = read(written.decode().replace(' root="2"', ""))

    assert imported.program.root == 2
    assert told in imported.report.assumed
    assert imported.document.kind == "plan"
    assert READ.read(written, Request(name="x")).program.root == 2


def test_what_executors_ignore_is_left_out_and_told():
    copies = '<gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0"><copy i_off="0" o_off="1"/>'
    text = RING.replace('<gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0">', copies)
    text = text.replace('nchannels="1"', 'nchannels="3" nthreads="512"')
    text = text.replace(
        'dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n      <step s="2"',
        ('dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>\n      <step s="2"'),
    )
    imported = read(text)

    assert imported.program == program_from_xml(RING.encode())
    assert imported.report.left_out == (
        "nchannels 3, of which 1 are used",
        "attributes of <algo>: nthreads",
        "1 <copy> rows, which executors ignore, are left out",
        "hasdep of 1 steps that no step waits for",
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("allgather", "alltoallv", "line 1: coll is alltoallv; there are allgather, "),
        ('ngpus="2"', 'ngpus="3"', "line 1: ngpus is 3 and there are 2 <gpu>"),
        ('proto="LL"', 'proto="LL64"', "line 1: proto is LL64; there are Simple, LL, LL128"),
        ('inplace="0"', 'inplace="2"', "line 1: inplace is 2; give 0 or 1"),
        ('nchunksperloop="2"', 'nchunksperloop="0"', "line 1: nchunksperloop is 0; give 1 to"),
        ('nchunksperloop="2"', 'nchunksperloop="9999999"', "give 1 to 1,048,576"),
        (' nchunksperloop="2"', "", "line 1: <algo> has no nchunksperloop; add it"),
        ('minBytes="4"', 'minBytes="-4"', "line 1: minBytes is -4; give 0 to"),
        ('<gpu id="1"', '<gpu id="2"', "line 12: the id of <gpu> is 2, out of order"),
        ('<gpu id="1"', '<gpu id="0"', "line 12: the id of <gpu> is 0, used twice"),
        ('<tb id="1"', '<tb id="2"', "line 8: the id of <tb> is 2, out of order"),
        ('<tb id="1"', '<tb id="0"', "line 8: the id of <tb> is 0, used twice"),
        ('send="1"', 'send="0"', "line 4: send of a thread block of rank 0 is 0, which is itself"),
        ('recv="1"', 'recv="2"', "line 4: recv of a thread block of rank 0 is 2, which is not"),
        ('send="1"', 'send="-2"', "line 4: send of a thread block of rank 0 is -2"),
        ('recv="1" chan="0"', 'recv="1" chan="-1"', "line 4: chan is -1; channels go from 0"),
        ('recv="1" chan="0"', 'recv="1" chan="1"', "line 1: nchannels is 1 and channel 1 is used"),
        ('s="1" type="r"', 's="2" type="r"', "line 6: the step is number 2 and in place 1"),
        ('type="cpy"', 'type="ra"', "line 9: type ra adds a residual"),
        ('type="cpy"', 'type="d"', "line 9: type is d; there are s, r, rcs"),
        ('srcbuf="i" srcoff="0"', 'srcbuf="x" srcoff="0"', "line 5: srcbuf is x; there are i, o"),
        ('srcoff="0"', 'srcoff="-1"', "line 5: srcoff is -1; give 0 to"),
        ('cnt="1"', 'cnt="0"', "line 5: cnt is 0; give 1 to"),
        ('cnt="1"', 'cnt="1e3"', 'line 5: <step cnt="1e3"> is not a whole number'),
        ('depid="0" deps="1"', 'depid="0" deps="2"', "line 9: the step waits for step 2 of thread"),
        ('depid="0" deps="1"', 'depid="2" deps="0"', "and there are 2 thread blocks"),
        ('depid="0" deps="1"', 'depid="1" deps="0"', "its own, which comes no earlier"),
        ('depid="0" deps="1"', 'depid="0" deps="-1"', "line 9: depid is 0 and deps -1"),
        ('hasdep="1"', 'hasdep="0"', "line 9: the step waits for step 1 of thread block 0, whose"),
        ('hasdep="1"', 'hasdep="2"', "line 6: hasdep is 2; give 0 or 1"),
        ("</algo>", "", "it is not XML"),
        ("<algo", '<!DOCTYPE a [<!ENTITY e "x">]><algo', "declares entities"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(old, new, told):
    assert old in RING
    with pytest.raises(FormatError, match="^x.xml: .*" + re.escape(told)):
        read_content(
            RING.replace(old, new, 1).encode(), Request(name="x.xml"), format_name="msccl-xml"
        )


def test_a_custom_program_is_read_and_has_no_plan():
    imported = read(RING.replace("allgather", "custom"))

    assert imported.program.collective == "custom"
    assert imported.document.kind == "topology"
    assert "there is no plan: the program is a custom one" in imported.report.left_out[0]


def test_a_program_that_goes_wrong_is_read_and_has_no_plan():
    """The second rank's receive goes where its own chunk belongs."""
    text = RING.replace(
        'dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n      <step s="2"',
        'dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>\n      <step s="2"',
    )
    imported = read(text)

    assert imported.program is not None
    assert imported.document.kind == "problem"
    assert imported.report.left_out == (
        "there is no plan: rank 1's output 0 must hold chunk 0 of rank 0 and holds nothing",
    )


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
@pytest.mark.parametrize("executor", ["msccl", "azure", "rccl"])
def test_a_plan_that_is_written_reads_back_as_one_as_good(kind, executor):
    """Whatever an order of messages keeps of a plan without limits, its time is among it."""
    topology = open_cluster("dgx-1v")
    problem = Problem(topology, make_collective(kind, 8, 2.0**20))
    result = solve(problem, "direct")
    written = WRITE.write(document(result), WRITE.options(executor=executor, largest=2**24))
    imported = read_content(written.content, Request(name="x.xml", topology=topology))

    assert imported.program.largest == 2**24
    assert f" in {result.timeline.makespan:.4g} µs" in imported.report.taken[1]
    assert imported.document.problem == problem
    assert any("epochs and times" in told for told in written.lost)


@given(planned().filter(lambda content: content.problem.collective.kind in KINDS))
@settings(max_examples=40)
def test_any_plan_that_is_written_reads_back_as_a_plan(content):
    """On any cluster: the collective is the same, the ways may be others, and it is verified."""
    written = WRITE.write(content, WRITE.options(executor="rccl"))
    size = {"size": repr(content.problem.collective.size)}
    asked = Request(name="x", topology=content.topology, settings=size)
    imported = READ.read(written.content, asked)

    assert imported.document.problem == content.problem
    assert imported.document.plan is not None
    assert imported.report.left_out == ()


def test_what_an_executor_would_not_take_is_not_written():
    problem = Problem(open_cluster("dgx-1v"), make_collective("gather", 8, 2.0**20))
    result = solve(problem, "direct")
    with pytest.raises(FormatError, match=r"microsoft/msccl would not take .* knows no gather"):
        WRITE.write(document(result), WRITE.options())


def test_complaints_are_listed_three_at_most():
    """64 thread blocks a rank are RCCL's limit: 16 instances of 7 peers and a copy are more."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 2.0**20))
    result = solve(problem, "direct")
    with pytest.raises(FormatError) as caught:
        WRITE.write(document(result), WRITE.options(executor="rccl", instances=16))
    told = str(caught.value)

    assert told.count("thread blocks and ROCm/rccl takes 64") == 3
    assert re.search(r"; and \d+ more$", told)


TOKENS = st.sampled_from(
    ["", "-1", "0", "1", "2", "999999999", "1e9", "nan", "i", "o", "s", "x", "rcs", "rrs", "re"]
)


def outcome(content: bytes) -> str:
    """Return what is said of a content that is refused, or nothing."""
    try:
        READ.read(content, Request(name="x.xml"))
    except (FormatError, ProblemError) as error:
        return str(error)
    return "x.xml: "


@given(st.data())
def test_any_edit_of_an_attribute_is_read_or_refused(data):
    """Nothing but errors of ours comes out, whatever stands where."""
    places = [found.span(1) for found in re.finditer(r'="([^"]*)"', RING)]
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True))
    text = RING
    for begin, end in sorted(chosen, reverse=True):
        text = text[:begin] + data.draw(TOKENS) + text[end:]

    assert outcome(text.encode()).startswith("x.xml: ")


@given(st.binary(max_size=40), st.integers(0, len(RING)), st.integers(0, 40))
def test_any_edit_of_the_bytes_is_read_or_refused(more, at, less):
    content = RING.encode()
    READ.recognises(more)

    assert outcome(content[:at] + more + content[at + less :]).startswith("x.xml: ")


def test_a_count_that_multiplies_is_not_followed():
    """A million chunks a step are a number in a file of a kilobyte, and stay one."""
    text = RING.replace('cnt="1"', 'cnt="1000000"')
    imported = read(text)

    assert "its steps move 6,000,000 chunks" in imported.report.left_out[0]
    assert imported.program.ranks[0].blocks[0].steps[0].count == 10**6


def test_written_files_are_plain_xml():
    for program in (gathered(3), summed(4)):
        root = parse_xml(program_to_xml(program).encode())
        assert [each.attributes["id"] for each in root.each("gpu")] == [
            str(rank) for rank in range(len(program.ranks))
        ]
