"""Schedules of TE-CCL for tests, as its programs write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ccl.topology import Link, Topology, device, duplex
from interchange.formats.format import Imported, Request
from interchange.formats.synthesizers.te_ccl import READER

MB = 1e6


def read(value: Mapping[str, Any], topology: Topology | None = None, **typed: str) -> Imported:
    """Read a file called plan.json."""
    asked = Request(name="plan.json", topology=topology, settings=typed)
    return READER.read(json.dumps(value).encode(), asked)


def schedule(
    flows: Sequence[str], *, tau: float, epochs: int, gpus: int, chunk: float, **more: Any
) -> dict[str, Any]:
    """Return a file of lines ``0 from 1: 1->2 in epoch 0``; µs, bytes of a chunk."""
    time = tau * 1e-6 * epochs
    return {
        "1-Epoch_Duration": tau * 1e-6,
        "2-Expected_Epoch_Duration": tau * 1e-6,
        "3-Epochs_Required": epochs,
        "4-Collective_Finish_Time": time,
        "5-Algo_Bandwidth": gpus * chunk * 1e-9 / time,
        "7-Flows": [f"Chunk {each.replace(':', ' traveled over')}" for each in flows],
        **more,
    }


def met(gpus: Sequence[int], *, chunks: int = 1, time: float = 1.0) -> dict[str, Any]:
    """Return the demands of an all-gather, all met at one time in seconds."""
    named = {f"Chunk {number}": time for number in range(chunks)}
    return {f"GPU {at}": {f"GPU {src}": named for src in gpus if src != at} for at in gpus}


def star(count: int, *, alpha: float = 0.0, copies: bool = True, last: float = 10.0) -> Topology:
    """A switch, number 0, and GPUs with links of 10 GB/s; the last receives with `last` GB/s."""
    names = [f"g{rank}" for rank in range(count)]
    links = [link for name in names for link in duplex("s", name, bandwidth=10.0, alpha=alpha)]
    links = [
        Link(e.src, e.dst, last, alpha) if e.dst == names[-1] and e.src == "s" else e for e in links
    ]
    hub = device("switch", "s", copies=copies)
    return Topology("star", (hub, *(device("gpu", name) for name in names)), tuple(links))


def line(count: int, *, bandwidth: float = 10.0, alpha: float = 0.0) -> Topology:
    """GPUs in a row."""
    links = [
        link
        for rank in range(count - 1)
        for link in duplex(f"g{rank}", f"g{rank + 1}", bandwidth=bandwidth, alpha=alpha)
    ]
    return Topology("line", tuple(device("gpu", f"g{r}") for r in range(count)), tuple(links))


def line_all_gather(count: int, *, alpha: float = 0.0) -> tuple[Topology, dict[str, Any]]:
    """A line on which each chunk of 1 MB goes both ways at once, 100 µs a link.

    Chunk c goes up from GPU c + i in epoch i, and so crosses the link above GPU r in epoch r - c:
    each link carries one chunk an epoch, and count - 1 epochs are all.
    """
    flows = [
        f"0 from {c}: {r}->{r + up} in epoch {abs(r - c)}"
        for up in (1, -1)
        for c in range(count)
        for r in (range(c, count - 1) if up == 1 else range(c, 0, -1))
    ]
    value = schedule(
        flows,
        tau=100.0,
        epochs=count - 1,
        gpus=count,
        chunk=MB,
        **{"6-Demand_Met": met(range(count))},
    )
    return line(count, alpha=alpha), value


def told(imported: Imported) -> str:
    """All sentences of a report."""
    report = imported.report
    return "\n".join((*report.taken, *report.assumed, *report.left_out))
