"""Processes that keep plans of a catalog without end, one after the other as each is killed."""

import itertools
import os
import sys

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import solve
from formulations.campaigns.catalog import Catalog
from gallery import open_cluster


def main(path: str, first: int) -> None:
    """Fork a writer and, when it is gone, the next; print the process id of each."""
    topology = open_cluster("ring:gpus=4")
    solve(Problem(topology, make_collective("all-gather", 4, 1.0)), "direct")
    for turn in itertools.count():
        child = os.fork()
        if not child:
            tell(f"writer {os.getpid()}")
            write(topology, Catalog(path), first + 10_000 * turn)
        os.waitpid(child, 0)


def write(topology, catalog, size):
    """Keep all-gathers of `size` bytes, one byte more, and so on; print each once it is kept."""
    while True:
        result = solve(Problem(topology, make_collective("all-gather", 4, float(size))), "direct")
        catalog.keep(result)
        tell(f"kept {size}")
        size += 1


def tell(line):
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
