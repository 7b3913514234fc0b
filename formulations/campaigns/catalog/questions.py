"""What makes two problems one question: the same bytes and, where these are fixed, the same chunks.

Where chunks are automatic a plan may cut them, and so may its result: what it answers is the
problem in equal parts (`Collective.cut`). The question is the uncut problem, and a plan of it says
in how many parts it is.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from itertools import groupby

from ccl.collective import Collective, made_of, make_collective
from ccl.problem import Problem
from ccl.serialization.topoloom import topology_to_json
from ccl.symmetry.canonical import Canonical, canonical
from ccl.topology import Topology

_DIGITS = 12
"""Digits of a size that count: sums in another order may differ in the last."""


def uncut(collective: Collective) -> Collective:
    """Return what `Collective.cut` has made this of; itself where its chunks are fixed."""
    if collective.whole:
        return collective
    named = made_of(collective)
    if named is not None:
        kind, ranks, size = collective.kind, collective.ranks, collective.size
        return collective if named[0] == 1 else make_collective(kind, ranks, size, root=named[1])
    chunks = collective.chunks
    parts = math.gcd(*(len(tuple(alike)) for _, alike in groupby(chunks)))
    if parts == 1:
        return collective
    merged = tuple(replace(each, size=each.size * parts) for each in chunks[::parts])
    return replace(collective, chunks=merged)


def asked_by(problem: Problem) -> Problem:
    """Return the problem that stands for the question of a problem, in its own names."""
    return _with(problem, uncut(problem.collective))


def parts_of(problem: Problem) -> int:
    """Return into how many parts the chunks of the question are cut in a problem."""
    collective = problem.collective
    return len(collective.chunks) // len(uncut(collective).chunks)


def in_parts(problem: Problem, parts: int) -> Problem:
    """Return the question of a problem with every chunk in `parts` parts."""
    one = uncut(problem.collective)
    made = one if parts == 1 else one.cut(parts)
    return _with(problem, made)


def form_of(problem: Problem) -> Canonical:
    """Return the canonical form of the question of a problem; fixed chunks have a digest apart."""
    asked = asked_by(problem)
    found = canonical(asked.topology, asked.collective, windows=asked.windows)
    return replace(found, digest=fixed(found.digest)) if asked.collective.whole else found


def fixed(digest: str) -> str:
    """Return the digest of the question in which the chunks of another are to stay whole."""
    return hashlib.sha256(f"{digest}, whole".encode()).hexdigest()[: len(digest)]


def size_of(problem: Problem) -> float:
    """Return the bytes of a problem as a catalog counts them."""
    return float(f"{problem.collective.size:.{_DIGITS}g}")


def exact(topology: Topology) -> str:
    """Return what tells one drawing of a cluster from others."""
    text = json.dumps(topology_to_json(topology), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _with(problem: Problem, collective: Collective) -> Problem:
    """Return a problem with another collective, itself where that is its own."""
    same = collective == problem.collective
    return problem if same else replace(problem, collective=collective)
