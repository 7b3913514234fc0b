"""Execution plans of MSCCL++ are written from plans, read back equal, and refused in words."""

import json
import random
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ccl.collective import make_collective
from ccl.errors import FormatError, ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import document
from designer.cli.entry import application
from formulations import solve
from gallery import open_cluster
from interchange.execution.one_sided import execute_one_sided
from interchange.formats.catalogue import readers, writer
from interchange.formats.runtimes.mscclpp import (
    Options,
    one_sided_from_json,
    one_sided_to_text,
    recognises,
)
from interchange.programs.one_sided import lower_one_sided
from tests.ccl.clusters import mesh, ring

MEMORY = {"channel_type": "memory"}


def planned(topology, kind, *, chunks=1):
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6, chunks=chunks))
    return problem, solve(problem, "list", time_limit=0.3).plan


def written(topology, kind, options=None, *, chunks=1):
    problem, plan = planned(topology, kind, chunks=chunks)
    return writer("mscclpp").write(document(problem, plan=plan), options or Options())


def buff(where, index, size=1):
    """Return a run of chunks by a buffer's letter or a remote buffer's place."""
    key = "type" if isinstance(where, str) else "buffer_id"
    return {key: where, "index": index, "size": size}


def shared(*, parts=0):
    """Return a plan of two ranks in place: rank 0 puts both chunks, rank 1 none.

    It is a broadcast of two chunks from rank 0; with `parts`, so many thread blocks share it.
    """

    def block(number, ops):
        return {
            "id": number,
            "ops": ops,
            "channels": [{**MEMORY, "channel_ids": [number]}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [1]}],
        }

    told = {**MEMORY, "channel_ids": [0]}
    many = max(1, parts)
    puts, takes = [], []
    for number in range(many):
        share = {"tbg_info": {"tb_id": number, "tbg_size": parts}} if parts else {}
        put = {"name": "put", "src_buff": [buff("i", 0, 2)], "dst_buff": [buff(0, 0, 2)]}
        nop = {"name": "nop"}
        ops = [{"name": "wait", **told}, nop, {**put, **MEMORY, **share}, nop]
        puts.append(block(number, [*ops, {"name": "signal", **told}]))
        takes.append(block(number, [{"name": "signal", **told}, {"name": "wait", **told}]))
    gpus = [
        {
            "id": rank,
            "input_chunks": 2,
            "output_chunks": 2,
            "scratch_chunks": 0,
            "threadblocks": blocks,
            "channels": [{**MEMORY, "connected_to": [1 - rank] * many}],
            "remote_buffers": [
                {"rank": 1 - rank, "type": "s", "access_channel_types": ["port"]},
                {"rank": 1 - rank, "type": "o", "access_channel_types": ["memory", "port"]},
            ],
        }
        for rank, blocks in enumerate((puts, takes))
    ]
    return {
        "name": "shared",
        "collective": "broadcast",
        "protocol": "Simple",
        "inplace": True,
        "gpus": gpus,
    }


def read(file):
    return one_sided_from_json(json.dumps(file).encode(), "plan.json")


def test_a_schedule_of_one_send_is_this_file():
    """By hand: g0 broadcasts one chunk to g1, and copies its own input to its output.

    g0's block 0 copies. Its block 1 waits on the channel to g1 until g1 is called, then puts from
    its input into remote buffer 0, which is g1's output, and signals; threads meet before and after
    the put. g1's block says that it is called, and waits.
    """
    problem = Problem(mesh(2), make_collective("broadcast", 2, 1e6))
    schedule = Schedule((Send(0, 0, "g0", "g1"),), epoch_duration=20.0, horizon=1)
    file = writer("mscclpp").write(document(problem, plan=schedule), Options(largest=2**20))

    one = {**MEMORY, "channel_ids": [0]}
    gpu = {"input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0, "semaphores": []}
    copy = {"name": "copy", "src_buff": [buff("i", 0)], "dst_buff": [buff("o", 0)]}
    put = {"name": "put", "src_buff": [buff("i", 0)], "dst_buff": [buff(0, 0)], **MEMORY}
    meet, tell, wait = {"name": "nop"}, {"name": "signal", **one}, {"name": "wait", **one}
    assert json.loads(file.content) == {
        "name": "broadcast_mesh",
        "collective": "broadcast",
        "protocol": "Simple",
        "inplace": False,
        "reuse_resources": False,
        "root": 0,
        "gpus": [
            {
                "id": 0,
                **gpu,
                "threadblocks": [
                    {"id": 0, "ops": [copy], "channels": [], "remote_buffer_refs": []},
                    {
                        "id": 1,
                        "ops": [wait, meet, put, meet, tell],
                        "channels": [one],
                        "remote_buffer_refs": [
                            {"access_channel_type": "memory", "remote_buffer_ids": [0]}
                        ],
                    },
                ],
                "channels": [{**MEMORY, "connected_to": [1]}],
                "remote_buffers": [{"rank": 1, "type": "o", "access_channel_types": ["memory"]}],
            },
            {
                "id": 1,
                **gpu,
                "threadblocks": [
                    {"id": 0, "ops": [tell, wait], "channels": [one], "remote_buffer_refs": []}
                ],
                "channels": [{**MEMORY, "connected_to": [0]}],
                "remote_buffers": [],
            },
        ],
        "num_threads_per_block": 1024,
        "use_double_scratch_buffer": False,
        "buffer_alignment": 16,
        "min_message_size": 0,
        "max_message_size": 2**20,
    }
    assert "sizes that are no multiple of 16 bytes: the executor refuses" in file.lost


@pytest.mark.parametrize(
    ("cluster", "kind", "chunks"),
    [
        ("ring:gpus=4", "all-reduce", 2),
        ("dgx-1v", "reduce-scatter", 1),
        ("dgx-a100:hosts=2", "all-gather", 1),
        ("star:gpus=4", "gather", 1),
        ("star:gpus=4", "scatter", 3),
        ("star:gpus=4", "all-to-all", 1),
    ],
)
def test_what_is_written_is_read_back(cluster, kind, chunks):
    problem, plan = planned(open_cluster(cluster), kind, chunks=chunks)
    for in_place in (False, True):
        program = lower_one_sided(problem, plan, Options(in_place=in_place, largest=2**30))
        text = one_sided_to_text(program)
        assert recognises(text.encode())
        assert one_sided_from_json(text.encode()) == program


def test_only_the_executor_takes_it():
    """No reader of documents claims such a file, and nothing else is taken for one."""
    content = written(ring(3), "all-gather").content
    assert not any(each.recognises(content) for each in readers())
    for other in (b"", b"{}", b"[]", b'{"threadblocks": 1}', b"\xff", b'"threadblocks"'):
        assert not recognises(other)
        with pytest.raises(FormatError, match=r"^x\.json: "):
            one_sided_from_json(other, "x.json")


@pytest.mark.parametrize("parts", [0, 2, 3])
def test_thread_blocks_share_an_operation(parts):
    """Two chunks in 3 shares are 6 thirds, 2 for each thread block; all is right in any order."""
    program = read(shared(parts=parts))
    execution = execute_one_sided(program, interleavings=20).check()
    assert program.ranks[0].input == 2 * max(1, parts)
    assert [each.kind for each in execution.remarks] == (["cut"] if parts else [])
    puts = [op for _, _, _, op in program.ops() if op.name == "put"]
    assert [op.dst[0].index for op in puts] == [2 * share for share in range(max(1, parts))]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(gpus=[]), "gpus is empty"),
        (lambda f: f.update(protocol="LL"), "the protocol is 'LL'"),
        (lambda f: f.update(reuse_resources=True), "reuse_resources"),
        (lambda f: f.pop("inplace"), "inplace"),
        (lambda f: f["gpus"].reverse(), r"at gpus\[0\]: its id is 1"),
        (lambda f: f["gpus"][1].update(scratch_chunks=10**9), "at most 8,000,000 are read"),
        (lambda f: f["gpus"][1].update(scratch_chunks=-1), r"at gpus\[1\].scratch_chunks"),
        (lambda f: _op(f, 2).update(name="ppkt"), r"at gpus\[0\].*ops\[2\] is 'ppkt'"),
        (lambda f: _op(f, 2).update(reduce_op="min"), "only sums"),
        (lambda f: _op(f, 0).update(channel_ids=[1]), "memory channel 1, which its thread block"),
        (lambda f: _op(f, 0).update(channel_type="switch"), "are of type 'switch'"),
        (lambda f: _op(f, 0).pop("channel_type"), "has no channel_type"),
        (lambda f: _op(f, 2)["dst_buff"][0].update(buffer_id=4), "uses remote buffer 4"),
        (lambda f: _op(f, 2)["dst_buff"][0].pop("buffer_id"), "neither type nor buffer_id"),
        (lambda f: _op(f, 2).update(tbg_info={"tb_id": 2, "tbg_size": 2}), "share 2 of 2"),
        (lambda f: f["gpus"][0]["threadblocks"][0].update(id=7), r"threadblocks\[0\] has the id 7"),
        (lambda f: _refs(f).update(remote_buffer_ids=[0]), "by a channel that does not reach it"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(change, words):
    file = shared()
    change(file)
    with pytest.raises(FormatError, match=rf"^plan\.json: .*{words}"):
        read(file)


def _op(file, number):
    return file["gpus"][0]["threadblocks"][0]["ops"][number]


def _refs(file):
    return file["gpus"][0]["threadblocks"][0]["remote_buffer_refs"][0]


def test_edited_files_are_refused_or_executed():
    """Whatever a file says, nothing but an error of ours comes out, and not after long."""
    text = json.dumps(shared(parts=2))
    chance = random.Random(6)
    values = ("0", "1", "-1", "7", "1e9", "null", '"s"', "[]", "{}", "99999999999999999999", "true")
    outcomes = set()
    for _ in range(300):
        file = json.loads(text)
        for _ in range(chance.choice((1, 1, 2))):
            _edit(file, chance, json.loads(chance.choice(values)))
        try:
            outcomes.add(execute_one_sided(read(file), interleavings=2).ok)
        except (FormatError, ProblemError):
            outcomes.add("refused")
    assert outcomes == {True, False, "refused"}


def _edit(file, chance, value):
    """Replace or remove something, somewhere."""
    places = []

    def walk(each):
        keys = each.keys() if isinstance(each, dict) else range(len(each))
        for key in list(keys):
            places.append((each, key))
            if isinstance(each[key], (dict, list)):
                walk(each[key])

    walk(file)
    holder, key = chance.choice(places)
    if chance.random() < 0.3:
        del holder[key]
    else:
        holder[key] = value


def test_many_thread_blocks_are_told():
    """Each of three in a ring passes on 2 shards of 32 chunks, a message each.

    With one message to a thread block of 8 operations these are 64 that put, 64 that wait and one
    that copies.
    """
    file = written(ring(3), "all-gather", replace(Options(), operations=8), chunks=32)
    assert any(each.startswith("129 thread blocks of a rank wait") for each in file.lost)


def test_the_command_line_executes_it(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(written(mesh(2), "all-reduce").content)
    told = CliRunner().invoke(application(), ["execute", str(path), "--interleavings", "3"])
    assert told.exit_code == 0
    assert "all-reduce of 2 ranks: right in 3 interleavings" in told.output
    assert "out of place" in told.output

    file = json.loads(path.read_bytes())
    block = file["gpus"][0]["threadblocks"][0]
    block["ops"] = [op for op in block["ops"] if op["name"] != "nop"]
    path.write_text(json.dumps(file))
    told = CliRunner().invoke(application(), ["execute", str(path), "--json"])
    assert told.exit_code == 1
    answer = json.loads(told.output)
    assert not answer["right"]
    assert answer["findings"][0]["kind"] in ("hazard", "unwritten")
