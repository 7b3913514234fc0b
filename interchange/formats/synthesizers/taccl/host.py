"""How the GPUs of one host are joined in a topology of TACCL (`taccl_topology`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from ccl.errors import FormatError
from ccl.serialization.text import Integer
from interchange.formats.format import Asked
from interchange.formats.synthesizers._asking import choice
from interchange.formats.synthesizers._matrices import Matrix, direction, square, turned

MOST_LINKS = 250_000
"""Of all hosts together."""

_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
"""Pairs of an NDv2 that two NVLinks join, and those that one joins."""

_INSIDE = {
    "switch": "every GPU reaches the others through one switch",
    "mesh": "every two GPUs have a link of their own",
}


class TacclFile(Struct):
    """The file; what TACCL writes as -1 is not there."""

    gpus_per_node: Integer
    alpha: float
    name: str = "TACCL topology"
    nics_per_node: Integer = -1
    node_betas_list: list[float] | None = None
    node_invbws_list: list[float] | None = None
    links: list[list[Integer]] | None = None
    betas: list[list[float]] | None = None
    invbws: list[list[float]] | None = None
    remote_alpha: float = -1
    remote_beta: float = -1
    remote_invbw: float = -1


@dataclass
class Told:
    """Sentences of the report."""

    taken: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Join:
    """Two GPUs of a host, by number, and what joins them one way: µs for a chunk on all of it."""

    src: int
    dst: int
    beta: float
    count: int = 1
    medium: str = ""


def listed(file: TacclFile, asked: Asked, told: Told) -> tuple[list[Join], float | None]:
    """Return the joins of a host whose kinds of links are listed, or the β of its hub."""
    inside = choice(asked, "inside", _INSIDE)
    betas = file.node_betas_list
    if betas is None:
        invbws = file.node_invbws_list or []
        betas = [each - file.alpha for each in invbws]
        told.assumed.append("β is node_invbws_list less alpha, for there is no node_betas_list")
    elif file.node_invbws_list is not None:
        pairs = [(file.alpha, each) for each in betas]
        compare("node_invbws_list", file.node_invbws_list, pairs, told)
    if len(betas) == 1:
        if inside == "mesh":
            return list(_mesh(file.gpus_per_node, betas[0])), None
        if inside is None:
            told.assumed.append(
                "one switch joins the GPUs of a host, as one β means in TACCL; setting "
                "inside=mesh gives every two a link"
            )
        return [], betas[0]
    if len(betas) == 2 and file.gpus_per_node == 8:
        told.assumed.append(
            "the hybrid cube mesh of an NDv2, as two β of 8 GPUs mean in TACCL; the first is of "
            "pairs with two NVLinks"
        )
        return [
            Join(*ends, beta, many, "NVLink 2")
            for pairs, beta, many in ((_DOUBLE, betas[0], 2), (_SINGLE, betas[1], 1))
            for pair in pairs
            for ends in (pair, pair[::-1])
        ], None
    msg = (
        f"at node_betas_list: {len(betas)} kinds of links among {file.gpus_per_node} GPUs, and "
        "nothing says which GPUs they join; give the matrices links and betas"
    )
    raise FormatError(msg)


def _mesh(gpus: int, beta: float) -> Iterator[Join]:
    if gpus * (gpus - 1) > MOST_LINKS:
        msg = f"a mesh of {gpus:,} GPUs has more than {MOST_LINKS:,} links; take inside=switch"
        raise FormatError(msg)
    return (Join(src, dst, beta) for src in range(gpus) for dst in range(gpus) if src != dst)


def custom(file: TacclFile, asked: Asked, told: Told) -> list[Join]:
    """Return the joins of a host of which the file has matrices."""
    side = file.gpus_per_node
    if file.links is None or (file.betas is None and file.invbws is None):
        msg = "it has no matrix links, or neither betas nor invbws; add them, or node_betas_list"
        raise FormatError(msg)
    square(file.links, "links", side)
    times = "betas" if file.betas is not None else "invbws"
    betas = file.betas if file.betas is not None else file.invbws
    assert betas is not None  # one of the two is there
    square(betas, times, side)
    linked = [(d, s) for d, row in enumerate(file.links) for s, many in enumerate(row) if many]
    if any(d == s for d, s in linked):
        place = next(d for d, s in linked if d == s)
        msg = f"at links[{place}][{place}]: GPU {place} is linked with itself; give 0"
        raise FormatError(msg)
    _check_counts(file.links, betas, linked, times)
    matrices: list[Matrix[int] | Matrix[float]] = [file.links, betas]
    if file.betas is None:
        told.assumed.append("β is invbws less alpha, for there is no matrix betas")
    elif file.invbws is not None:
        square(file.invbws, "invbws", side)
        matrices.append(file.invbws)
        pairs = [(file.alpha, file.betas[d][s]) for d, s in linked]
        compare("invbws", [file.invbws[d][s] for d, s in linked], pairs, told)
    by_row, how = direction(asked, matrices)
    told.assumed += how
    links, rows = (file.links, betas) if by_row else (turned(file.links), turned(betas))
    less = file.alpha if file.betas is None else 0.0
    return [
        Join(src, dst, (rows[dst][src] - less) / many, many)
        for dst, row in enumerate(links)
        for src, many in enumerate(row)
        if many
    ]


def _check_counts(
    links: list[list[int]],
    betas: list[list[float]],
    linked: list[tuple[int, int]],
    times: str,
) -> None:
    """Refuse links without a time, and more parallel links than there are."""
    for row, column in linked:
        if links[row][column] > 10_000:
            msg = f"at links[{row}][{column}]: {links[row][column]:,} links; give 10,000 at most"
            raise FormatError(msg)
        if not betas[row][column] > 0:
            msg = (
                f"at {times}[{row}][{column}]: 0 µs where links has a link; give its time for a "
                "chunk in µs"
            )
            raise FormatError(msg)


def compare(place: str, said: list[float], pairs: list[tuple[float, float]], told: Told) -> None:
    """Report where a file's α + β is not what it says elsewhere; TACCL rounds these down."""
    if len(said) != len(pairs):
        msg = f"at {place}: it has {len(said)} values, and there are {len(pairs)} kinds of links"
        raise FormatError(msg)
    wrong = [
        (each, alpha + beta)
        for each, (alpha, beta) in zip(said, pairs, strict=True)
        if each >= 0
        and not math.isclose(each, alpha + beta, rel_tol=0.01)
        and each not in (math.floor(alpha + beta), math.ceil(alpha + beta))
    ]
    if wrong:
        each, made = wrong[0]
        told.left_out.append(
            f"{place}, which says {each:g} µs where α + β are {made:g} µs "
            f"({len(wrong)} of {len(said)}); α and β are kept"
        )
