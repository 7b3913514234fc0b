"""From a problem to trees of one root: rate, root and halves, then `blink.packer`."""

from __future__ import annotations

from ccl.errors import ProblemError
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.result import Result, Status, Stop
from formulations.core.run import Run
from formulations.engines.blink.halves import shared_halves
from formulations.engines.blink.options import Options
from formulations.engines.blink.packer import Packer
from formulations.engines.blink.roots import best_root, of_root, same_both_ways, turned_round
from formulations.engines.forestcoll.all_reduce import shared_rates
from formulations.engines.forestcoll.network import Network, network_of
from formulations.engines.forestcoll.plans import halves, turned
from formulations.engines.forestcoll.search import BYTES, Rate, forest_rate, rate_of


def solve_blink(run: Run, options: Options) -> Result:
    """Offer the trees of one root.

    Raises
    ------
    ProblemError
        If the root asked for is no rank.
    LimitReached
        If there was no time for any trees.
    """
    packer = Packer(run, options)
    whole = run.problem.collective.kind == "all-reduce"
    forest = _all_reduce(packer) if whole else _half(packer)
    run.note(f"{len(forest.trees)} trees of one root, {forest.depth} GPUs deep")
    run.offer(forest, message="a forest")
    best = run.best
    met = best is not None and best.status is Status.THROUGHPUT
    return run.finish(Stop.RATE if met else run.reached if run.enough else Stop.CONSTRUCTED)


def _half(packer: Packer) -> Forest:
    """Return the trees of a broadcast or a reduction."""
    run = packer.run
    rate = forest_rate(run.problem)
    run.bounds = tuple(sorted((*run.bounds, rate.bound), key=lambda each: -each.makespan))
    trees = packer.trees(rate)
    return Forest(_turned(trees) if rate.reduces else trees, reduces=rate.reduces)


def _all_reduce(packer: Packer) -> Forest:
    """Return trees that go up to a root and down again."""
    run = packer.run
    network = network_of(halves(run.problem)[1])
    root = best_root(network, _asked(run.problem, packer.options.all_reduce_root))
    nbytes = network.share * int(network.weight.sum()) / BYTES
    run.note(
        f"root {run.problem.topology.ranks[root.rank]}: at most {float(root.into):.6g} GB/s up and "
        f"{float(root.out):.6g} GB/s down; {float(nbytes / root.into + nbytes / root.out):.6g} µs "
        "if each half had the links alone, one after the other"
    )
    back = same_both_ways(network)
    rates = _alone(network, root.rank)
    whole = None
    if packer.options.halves == "at once":
        shares = shared_halves(network, root.rank, backend=run.backend, left=lambda: run.left)
        run.met(shares.size)
        run.note(f"both halves at once take {shares.makespan:.6g} µs in the steady state")
        whole = float(nbytes) / shares.makespan
        rates = shared_rates(run.problem, shares, backend=run.backend) or rates
    up, down = rates
    if back is None:
        return Forest(_turned(packer.trees(up)), reduces=True, spread=packer.trees(down))
    if whole is None or packer.plain or len(network.gpus) < len(network.weight):
        spread = packer.trees(down)
    else:
        spread = packer.both_ways(down, back, whole)
    return Forest(_turned(spread), reduces=True, spread=spread)


def _alone(network: Network, rank: int) -> tuple[Rate, Rate]:
    """Return the rates up and down, each alone on the links."""
    up, down = (
        rate_of(each, sinks=each.sinks, reduces=False)
        for each in (of_root(turned_round(network), rank), of_root(network, rank))
    )
    return up, down


def _asked(problem: Problem, rank: int | None) -> int | None:
    ranks = len(problem.topology.ranks)
    if rank is not None and rank >= ranks:
        msg = f"root {rank} is no rank of {problem.topology}; ranks go from 0 to {ranks - 1}"
        raise ProblemError(msg)
    return rank


def _turned(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    return tuple(turned(tree) for tree in trees)
