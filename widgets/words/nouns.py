"""Nouns in one or two sentences, for those who see no picture."""

from __future__ import annotations

from ccl.bound import Bound, Path
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import format_size
from ccl.topology import Topology
from widgets import text
from widgets.shown.classes import counted
from widgets.words.cuts import cut_words

BOUND_LABELS = {
    "path": "Latency of the longest way",
    "injection": "What one GPU must send",
    "ejection": "What one GPU must receive",
    "cut": "Bottleneck cut",
    "stages": "Two cuts in a row",
    "group": "Sums among all",
    "flow": "All demands at once",
    "solver": "Solver's bound",
}
"""What a bound of a kind is about."""

_OTHERS = {
    "switch": ("switch", "switches"),
    "memory": ("memory", "memories"),
    "nic": ("NIC", "NICs"),
}


def topology_words(topology: Topology) -> str:
    """Say what a cluster has: ``dgx-1v: 8 GPUs, 32 links, one way each``."""
    kinds: list[str] = [each.kind for each in topology.devices]
    parts = [counted(len(topology.ranks), "GPU")]
    for kind, (one, many) in _OTHERS.items():
        if count := kinds.count(kind):
            parts.append(f"{count:,} {one if count == 1 else many}")
    parts.append(f"{counted(len(topology.links), 'link')}, one way each")
    if topology.limits:
        parts.append(counted(len(topology.limits), "shared limit"))
    return f"{topology.name}: {', '.join(parts)}"


def problem_words(problem: Problem) -> str:
    """Say what is asked: ``all-gather of 1 MB on dgx-1v: 8 GPUs, ...``."""
    asked = problem.collective
    return f"{asked.kind} of {format_size(asked.size)} on {topology_words(problem.topology)}"


def result_words(result: Result) -> str:
    """Say how long a plan takes, how good that is and why it stopped there."""
    asked = result.problem.collective
    who = f"{result.formulation} ({result.found_by})" if result.found_by else result.formulation
    steady = ""
    if result.steady_makespan is not None:
        steady = f"; {text.duration(result.steady_makespan)} in the steady state"
    return (
        f"{asked.kind} of {format_size(asked.size)} on {result.problem.topology.name}: "
        f"{text.duration(result.makespan)}, {text.share(result.gap)} above the bound of "
        f"{text.duration(result.bound.makespan)} ({result.verdict}){steady}\n"
        f"{text.digits(result.algbw)} GB/s algbw, {text.digits(result.busbw)} GB/s busbw; "
        f"{who}, {text.seconds(result.solve_time)}: {result.stop}"
    )


def bound_words(bound: Bound, topology: Topology | None = None) -> str:
    """Say what no plan can be faster than, and why.

    Parameters
    ----------
    bound
        What is told.
    topology
        The cluster, if it is known: a cut is told by whole hosts then.
    """
    limits = "no plan that keeps chunks whole" if bound.whole_chunks else "no plan"
    reference = f": {bound.reference}" if bound.reference else ""
    return (
        f"{limits} takes less than {text.duration(bound.makespan)} "
        f"({bound_proof(bound, topology)}){reference}"
    )


def bound_proof(bound: Bound, topology: Topology | None = None) -> str:
    """Name what proves a bound: ``Bottleneck cut, 200 GB/s out of h0``."""
    label, witness = BOUND_LABELS[bound.kind], bound.witness
    if witness is None:
        return label
    if isinstance(witness, Path):
        return f"{label}, {witness.devices[0]} to {witness.devices[-1]}"
    if topology is not None:
        return f"{label}, {cut_words(witness, topology)}"
    rate, entered = text.bandwidth(witness.bandwidth), {dst for _, dst in witness.links}
    if len(entered) == 1 < len(witness.inside):
        return f"{label}, {rate} into {entered.pop()}"
    return f"{label}, {rate} out of {text.listing(witness.inside)}"
