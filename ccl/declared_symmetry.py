"""What the builder of a cluster knows of its symmetry; `ccl.symmetry` checks it before it is used.

A declaration is only a hint: it may have become wrong by an edit of the cluster, and what is
wrong is left out, generator by generator.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Interchange:
    """Blocks of devices that may be permuted among one another at will.

    Parameters
    ----------
    blocks
        Names of the devices of each block, all equally many; devices at the same place of two
        blocks take each other's place.
    inner
        What may be permuted inside a block, said with the names of the first one; it holds in
        every block on its own.

    Raises
    ------
    ProblemError
        If there is no block, or they are not equally long.
    """

    blocks: tuple[tuple[str, ...], ...]
    inner: tuple[Declared, ...] = ()

    def __post_init__(self) -> None:
        if len(set(map(len, self.blocks))) != 1 or not self.blocks[0]:
            msg = "an interchange needs blocks that have equally many devices, and at least one"
            raise ProblemError(msg)


@dataclass(frozen=True, slots=True)
class Permutation:
    """One permutation of devices; those that are not named stay where they are.

    Parameters
    ----------
    names
        Devices that move.
    images
        Where each of them goes: the same names in another order.

    Raises
    ------
    ProblemError
        If there are not as many images as names.
    """

    names: tuple[str, ...]
    images: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.images):
            msg = f"a permutation of {len(self.names)} devices has {len(self.images)} images"
            raise ProblemError(msg)


Declared = Interchange | Permutation


def moves_at_will(declared: Declared) -> bool:
    """Whether nothing but interchanges is declared, so that it is known what fixes a device."""
    return isinstance(declared, Interchange) and all(map(moves_at_will, declared.inner))
