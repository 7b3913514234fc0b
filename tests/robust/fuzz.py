"""Feed every reader broken files: ``make fuzz``, for ten minutes.

Good files (the samples of the tests, and what the writers make of small clusters) are cut, spliced,
repeated and filled with numbers and words that break programs. A reader may return or raise one of
our errors, with the name of the file first; anything else is a finding: another exception, a file
opened, a process or a connection begun, more memory or time than the file's size explains. The
same seed makes the same files.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import resource
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from ccl.collective import make_collective
from ccl.errors import CclError, FormatError
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.topology import Topology
from designer.views.draw.importing import Found, opened
from formulations import solve
from gallery import open_cluster
from interchange.formats.catalogue import readers, writers
from interchange.formats.format import Imported, Question, Reader, Request
from tests.robust.hostile_files import hostile_documents

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "interchange" / "formats" / "samples"

CLUSTERS = ("ring:gpus=4", "star:gpus=4", "dgx-1v", "dgx-a100:hosts=2")
OWN = "topoloom"
METHODS = {"forestcoll": ("forestcoll",), OWN: ("list", "forestcoll", "orbit-trees", "te-ccl-lp")}
"""Reader -> what finds the plans that its good files hold; else one in epochs."""

MOST_BYTES = 200_000
"""Of a good file that is broken; larger ones only slow it down."""

SLOW = 20.0
"""Seconds that a read may take."""

FROZEN = 90.0
"""Seconds after which the whole process ends with a traceback, whatever holds its interpreter."""

MOST_MEMORY = 256 * 2**20
"""Bytes that Python may take for a read of these sizes."""

ADDRESS_SPACE = 8 * 2**30
"""Bytes for the whole process: what takes more ends with a MemoryError, which is a finding."""

NUMBERS = (
    b"1e999999999", b"-1e999999999", b"1e-999999999", b"1E+999999999", b"1e999999999/3", b"1/0",
    b"9" * 400, b"9" * 4_000, b"9" * 5_000, b"-" + b"9" * 400, b"0x" + b"f" * 5_000, b"0" * 5_000,
    b"0." + b"0" * 5_000 + b"1", b"1_0", b"1e308", b"-1e308", b"5e-324", b"1e-300",
    b"9007199254740993",
    b"9223372036854775808", b"NaN", b"-Infinity", b"1:59:59:59:59:59:59", b"0b1", b"1e", b"--1",
    "\u0661\u0662".encode(), "\u00b2".encode(),
)  # fmt: skip
"""Texts in the place of a number, each of which has stopped some program."""

SMALL: dict[str, bytes] = {
    "sketch": b'{"between": [["g0", "g1"]], "without": [["g1", "g2"]], "chunks": 3}',
    "taccl-sketch": (
        b'{"nnodes": 2, "intranode_sketch": {"strategy": "minmax"}, "internode_sketch": '
        b'{"strategy": "relay", "internode_conn": {"0": [1]}}, "symmetry_offsets": [[2, 4]], '
        b'"hyperparameters": {"input_chunkup": 2, "input_size": "1M"}}'
    ),
    "taccl-topology": (
        b'{"name": "chain", "gpus_per_node": 3, "alpha": 1.0, "links": [[0, 0, 0], [1, 0, 0], '
        b'[0, 2, 0]], "betas": [[0, 0, 0], [20, 0, 0], [0, 40, 0]]}'
    ),
}
"""Reader -> a good file where neither a sample nor a writer has one."""

WORDS = (
    b"a" * 1_000_000, b"[" * 100_000, b"{\"a\":" * 100_000, b"<a>" * 10_000, b"(" * 100_000,
    b"0", b"-1", b"1", b"2147483648", b"18446744073709551616", b"1e999", b"-1e999", b"NaN", b"nan",
    b"inf", b"Infinity", b"1e-320", b"0.1", b"999999999", b"100000", b"0x", b"0xffffffffffffffff",
    b"null", b"true", b"[]", b"{}", b'""', b'"', b"'", b"<", b">", b"&", b"&lol;", b"]]>", b"<!--",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"../../etc/passwd", b"file:///etc/passwd", b"\x00", b"\xff",
    b"\xef\xbb\xbf", "\u202e\U0001f600".encode(), b"%s%n", b"\r\n", b"\t", b" ", b",", b":", b"/",
    b"gpu0", b"GPU0", b"a" * 300, b"[" * 200, b"{\"a\":" * 100, b"&a *a", b"!!python/object:os",
)  # fmt: skip
_NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:/\d+)?")
_WORD = re.compile(rb"[A-Za-z_]+")
_TOKEN = re.compile(rb"[A-Za-z_]+|\d+(?:\.\d+)?|\s+|[^\w\s]")


@dataclass
class Tally:
    """What came of one reader's files."""

    read: int = 0
    refused: int = 0
    asked: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def files(self) -> int:
        """How many were tried."""
        return self.read + self.refused + self.asked + len(self.findings)


class Watch:
    """Sees what a reader does outside of its content."""

    EVENTS = (
        "open",
        "socket.connect",
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "urllib.Request",
    )

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in self.EVENTS and not _of_python(arguments):
            self.seen.append(f"{event} {arguments[:1]}")


def _of_python(arguments: tuple[Any, ...]) -> bool:
    """Say whether Python opens a module, which happens at the first read."""
    name = str(arguments[0]) if arguments else ""
    return name.endswith((".py", ".pyc", ".so", ".pth")) or "__pycache__" in name


def good_files(name: str, clusters: tuple[str, ...] = CLUSTERS) -> list[bytes]:
    """Return files to break: samples, what a format's writer makes, and hostile ones of ours."""
    found = [
        path.read_bytes()
        for path in sorted(SAMPLES.rglob("*"))
        if path.is_file() and path.stat().st_size <= MOST_BYTES
    ]
    (reader,) = (each for each in readers() if each.name == name)
    own = [content for content in found if reader.recognises(content)]
    others = hostile_documents().values() if name == OWN else ()
    small = [each for each in others if len(each) <= MOST_BYTES]
    return [*own, *_written(name, clusters), *small, *([SMALL[name]] if name in SMALL else [])]


def _written(name: str, clusters: tuple[str, ...]) -> Iterator[bytes]:
    writer = next((each for each in writers() if each.name == name), None)
    if writer is None:
        return
    for cluster, method in product(clusters, METHODS.get(name, ("list",))):
        topology = open_cluster(cluster)
        problem = Problem(topology, make_collective("all-gather", len(topology.ranks), 1e6))
        try:
            result = solve(problem, method, time_limit=0.3)
            made = writer.write(document(result), writer.options())
        except CclError:
            continue
        if len(made.files) == 1 and len(made.content) <= MOST_BYTES:
            yield made.content
        if name == OWN:
            bare = document(problem, plan=result.plan)
            yield writer.write(bare, writer.options()).content[:MOST_BYTES]


def broken(good: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Break a file in one way or several."""
    content = good
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        content = chance.choice(_BREAKS)(content, others, chance)
    return content[: 4 * MOST_BYTES]


def _token(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Put a word in the place of another."""
    tokens = [each.span() for each in _TOKEN.finditer(content)]
    if not tokens:
        return chance.choice(WORDS)
    start, end = chance.choice(tokens)
    return content[:start] + chance.choice(WORDS) + content[end:]


def _number(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Put a number in the place of another, that of all places where it stands at times."""
    numbers = [each.span() for each in _NUMBER.finditer(content)]
    if not numbers:
        return content
    start, end = chance.choice(numbers)
    other = chance.choice(
        [*NUMBERS, *WORDS[5:25], b"%d" % chance.randrange(-3, 70), b"%g" % chance.gauss(0, 1e6)]
    )
    if chance.random() < 0.2:
        return content.replace(content[start:end], other)
    return content[:start] + other + content[end:]


def _cut(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Take a stretch out."""
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.choice((1, 2, 10, 100, len(content))) :]


def _again(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Repeat a stretch."""
    start = chance.randrange(len(content) + 1)
    stretch = content[start : start + chance.choice((1, 20, 200, 2000))]
    return content[:start] + stretch * chance.choice((2, 3, 30)) + content[start:]


def _line(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Take out, repeat or move a line."""
    lines = content.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    for _ in range(chance.choice((0, 1, 2))):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _splice(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Go on with another file."""
    other = chance.choice(others)
    return content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other) + 1) :]


def _byte(content: bytes, _others: list[bytes], chance: random.Random) -> bytes:
    """Change a byte."""
    if not content:
        return b"\x00"
    at = chance.randrange(len(content))
    return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]


_BREAKS = (_token, _token, _number, _number, _cut, _again, _line, _splice, _byte)


def read_one(
    reader: Reader, content: bytes, tally: Tally, *, topology: Topology, watch: Watch
) -> None:
    """Read one file and note what came of it."""
    began = time.perf_counter()
    watch.on, watch.seen = True, []
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    trouble = ""
    try:
        reader.recognises(content)
        imported = reader.read(content, Request(name="fuzzed", topology=topology))
        _open(reader, imported, topology)
        tally.read += 1
    except Question:
        tally.asked += 1
    except CclError as error:
        tally.refused += 1
        if not str(error).startswith("fuzzed"):
            trouble = f"the error does not begin with the file's name: {error}"
    except BaseException as error:  # whatever it is, it is a finding
        if isinstance(error, KeyboardInterrupt):
            raise
        trouble = f"{type(error).__name__}: {error}"
    watch.on = False
    took = time.perf_counter() - began
    grown = tracemalloc.get_traced_memory()[1] - before
    trouble = trouble or (f"did {', '.join(watch.seen)}" if watch.seen else "")
    trouble = trouble or (f"took {took:.1f} s" if took > SLOW else "")
    trouble = trouble or (f"took {grown / 2**20:.0f} MiB" if grown > MOST_MEMORY else "")
    if trouble:
        tally.findings.append(trouble)


def _open(reader: Reader, imported: Imported, topology: Topology) -> None:
    """Go on as the page does with a file that was read: its plan is verified and replayed."""
    found = Found(reader, imported)
    if found.brings not in ("sketch", "paths"):
        try:
            opened(found, topology)
        except CclError as error:  # the page says which file it was
            raise FormatError(f"fuzzed: {error}") from None


def fuzz(
    names: list[str],
    *,
    seconds: float,
    seed: int,
    most: int | None = None,
    keep: Path | None = None,
) -> dict[str, Tally]:
    """Try files on each reader in turn until the time is over, or `most` on each."""
    watch = Watch()
    topology = open_cluster("ring:gpus=4")
    by_name = {each.name: each for each in readers()}
    good = {name: good_files(name) or [b""] for name in names}
    every = [content for listed in good.values() for content in listed]
    tallies = {name: Tally() for name in names}
    chances = {name: random.Random(f"{seed} {name}") for name in names}
    kinds: Counter[tuple[str, str]] = Counter()
    tracemalloc.start()
    until = time.monotonic() + seconds
    turns = 0
    while time.monotonic() < until and turns != most:
        turns += 1
        for name in names:
            content = broken(chances[name].choice(good[name]), every, chances[name])
            tally = tallies[name]
            had = len(tally.findings)
            if keep is not None:
                (keep / "last").write_bytes(content)
            faulthandler.dump_traceback_later(FROZEN, exit=True)
            read_one(by_name[name], content, tally, topology=topology, watch=watch)
            if len(tally.findings) > had:
                kinds[name, tally.findings[-1][:60]] += 1
                if keep is not None and kinds[name, tally.findings[-1][:60]] == 1:
                    (keep / f"{name}-{len(tally.findings)}").write_bytes(content)
    faulthandler.cancel_dump_traceback_later()
    tracemalloc.stop()
    return tallies


def with_numbers(good: bytes, *, places: int) -> Iterator[bytes]:
    """Yield a file with each of `NUMBERS` in the place of each number, of alike ones the first.

    Parameters
    ----------
    good
        The file.
    places
        That are tried at most.
    """
    first: dict[bytes, tuple[int, int]] = {}
    for each in _NUMBER.finditer(good):
        # Words before a number say what it is: a key, an attribute, the head of a column.
        before = _WORD.findall(good[max(0, each.start() - 60) : each.start()])
        first.setdefault(b" ".join(before[-2:]), each.span())
    for start, end in list(first.values())[:places]:
        for number in NUMBERS:
            yield good[:start] + number + good[end:]


def numbers(name: str, *, files: int, places: int) -> Tally:
    """Try hostile numbers on a reader, in the smallest of its good files."""
    watch, tally = Watch(), Tally()
    topology = open_cluster("ring:gpus=4")
    reader = next(each for each in readers() if each.name == name)
    tracemalloc.start()
    hostile = {*hostile_documents().values()}
    listed = [
        each
        for each in good_files(name, CLUSTERS[:1])
        if _NUMBER.search(each) and each not in hostile
    ]
    for good in sorted(listed, key=len)[:files]:
        for content in with_numbers(good, places=places):
            faulthandler.dump_traceback_later(FROZEN, exit=True)
            read_one(reader, content, tally, topology=topology, watch=watch)
    faulthandler.cancel_dump_traceback_later()
    tracemalloc.stop()
    return tally


def main() -> int:
    """Print a row for each reader; 1 if anything was found."""
    asked = argparse.ArgumentParser(description="Feed every reader broken files.")
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--reader", action="append", help="by name; by default all")
    asked.add_argument("--keep", type=Path, help="folder for files that broke a reader")
    given = asked.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    names = given.reader or [each.name for each in readers()]
    tallies = fuzz(names, seconds=given.seconds, seed=given.seed, keep=given.keep)
    print(f"{'reader':18}{'files':>9}{'read':>9}{'refused':>9}{'asked':>7}{'found':>7}")
    for name, tally in tallies.items():
        counts = f"{tally.files:9,}{tally.read:9,}{tally.refused:9,}{tally.asked:7,}"
        print(f"{name:18}{counts}{len(tally.findings):7,}")
        for each, many in Counter(finding[:160] for finding in tally.findings).most_common(8):
            print(f"    {many} x {each}")
    total = sum(tally.files for tally in tallies.values())
    found = sum(len(tally.findings) for tally in tallies.values())
    print(f"{total:,} files, {found:,} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
