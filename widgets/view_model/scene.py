"""What the canvas draws, as JSON, for one plan or for several in step, and the words of its host.

The drawing, the scene that is played and the cuts are made of the nouns of `ccl`; nothing here
knows a browser. For the players that run in step (`films`, `result_films`), rows of a comparison or
results are plain values, too: what can be chosen, which are, and their scenes.

`PROPS` and `PAIR_PROPS` list, once for every host, what the canvas and its host exchange; the JSON
shapes are those of `drawing`, `scene` and `cuts`. The Dash component takes its properties from the
lists; the notebook widget's traits have the same names, which a test holds them to.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ccl import text
from ccl.bound import Bound, Cut
from ccl.collective import Chunk
from ccl.explain.narration import chunk_label, round_digits, templates, terms_label
from ccl.layout import layout
from ccl.plans import Forest, Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.serialization.quantity import format_size
from ccl.serialization.topoloom import topology_to_json
from ccl.simulate import simulate
from ccl.timeline import Reason, Timeline, Transfer, Transfers, causes, trace_critical
from ccl.topology import Topology
from widgets.view_model.steps import marks

if TYPE_CHECKING:
    from formulations.analyses.comparison import Comparison, Row

STEPS = 20
"""Steps of the player for a plan without epochs of its own, or with too many."""

MOST_SENTENCES = 60
"""Sentences of one epoch; nobody reads more, and the page has to hold them all."""

MOST_EPOCHS = 20_000
"""Epochs above which a plan is played in a few steps; the page has to hold something of each."""

MOST_DETAILED = 30_000
"""Transfers of a scene above which it is not told why each of them waited."""

SAMPLE = 50_000
"""Transfers that are shown of a plan that has too many for a page."""


def drawing(
    topology: Topology, positions: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, Any]:
    """Return a topology and the places of its devices as one document.

    Parameters
    ----------
    topology
        What is drawn.
    positions
        Middle of each device by name, x to the right and y down; the canvas finds places for
        devices that have none.
    """
    places = positions or {}
    return {
        "topology": topology_to_json(topology),
        "positions": {name: [float(x), float(y)] for name, (x, y) in places.items()},
    }


def take(series: str, number: int) -> dict[str, Any]:
    """Name a schedule among those of one solve, each better than the one before.

    The player goes on where it is when the next of a series comes.
    """
    return {"series": series, "number": number}


def scene(
    problem: Problem,
    plan: Plan,
    timeline: Timeline,
    *,
    take: dict[str, Any] | None = None,
    most: int | None = None,
) -> dict[str, Any]:
    """Return what the player shows of a plan that was replayed; `take` as the function says it.

    The replay of a symmetric forest has the transfers of some of its trees; all of them are shown.
    With up to `MOST_DETAILED` transfers the scene has `details`, else none: for each transfer its
    reason, the transfer that let it start (or -1), when what it carries was at its source and when
    it had left the link (µs), and the epoch that it was planned for (or -1).

    Of a plan of more than `most` transfers the scene shows some chunks at the times at which they
    move among all others, evenly taken, and `every` says how many there are; nothing is played
    where one chunk alone has too many.
    """
    topology, collective = problem.topology, problem.collective
    shown, timeline = _seen(problem, plan, timeline, most=most)
    if not shown:
        return still(problem)
    every = len(collective.chunks)
    part = "" if len(shown) == every else f", {len(shown):,} of {every:,} chunks"
    step = _step(plan, timeline)
    epochs = max(1, math.ceil(timeline.makespan / step - 1e-6))
    return {
        "topology": topology_to_json(topology),
        "chunks": _chunks(problem, shown),
        "holds": _holds(problem, shown),
        "transfers": _rows(problem, timeline, shown),
        "makespan": timeline.makespan,
        "epoch_duration": step,
        "epochs": epochs,
        "sentences": _sentences(problem, timeline, step=step, epochs=epochs),
        "title": f"{collective.kind.capitalize()} on {topology.name}{part}",
        "details": None if part else _details(problem, timeline),
        **({} if part else marks(problem, timeline)),
        **_terms(timeline),
        **({"every": every} if part else {}),
        **({} if take is None else {"take": take}),
    }


def _rows(problem: Problem, timeline: Timeline, shown: Sequence[int]) -> list[list[Any]]:
    """Return chunk, ends, start, end and share of the chunk of each transfer."""
    place = {number: i for i, number in enumerate(shown)}
    sizes = [chunk.size for chunk in problem.collective.chunks]
    return [
        [
            place[each.chunk],
            each.src,
            each.dst,
            round_digits(each.start),
            round_digits(each.end),
            round_digits(each.nbytes / sizes[each.chunk]),
        ]
        for each in timeline.transfers
    ]


def _seen(
    problem: Problem, plan: Plan, timeline: Timeline, *, most: int | None
) -> tuple[Sequence[int], Timeline]:
    """Return numbers of the chunks that are shown, and how they move; none if one is too long."""
    if most is not None and moves(timeline) > most:
        shown = _some_chunks(timeline, SAMPLE)
        return shown, _only(timeline, shown)
    if timeline.images > 1 and isinstance(plan, Forest):
        timeline = simulate(problem, plan.unfolded(problem.topology), chunks=timeline.chunks)
    return range(len(problem.collective.chunks)), timeline


def _some_chunks(timeline: Timeline, most: int) -> Sequence[int]:
    """Return numbers of chunks with so many transfers together, evenly taken; none if one has more.

    Of symmetric forests those whose trees stand for others.
    """
    moved = timeline.transfers
    assert isinstance(moved, Transfers)  # only few are put together elsewhere
    numbers, many = np.unique(moved.chunk, return_counts=True)
    count = min(len(numbers), most // max(1, int(many.max(initial=1))))
    return [int(numbers[i * len(numbers) // count]) for i in range(count)]


def _only(timeline: Timeline, chunks: Sequence[int]) -> Timeline:
    """Return the transfers of some chunks, each of which stands for itself."""
    moved = timeline.transfers
    assert isinstance(moved, Transfers)
    places = np.flatnonzero(np.isin(moved.chunk, chunks))
    terms = tuple(timeline.terms[i] for i in places.tolist()) if timeline.terms else ()
    return Timeline(moved.at(places), timeline.makespan, timeline.chunks, terms=terms)


def _terms(timeline: Timeline) -> dict[str, Any]:
    """Return the sets of ranks whose contributions are sent, and of each transfer which it carries.

    Nothing where no send names them; -1 for a transfer that carries all that is added up.
    """
    if not timeline.terms:
        return {}
    place: dict[frozenset[int], int] = {}
    carried = [
        -1 if each is None else place.setdefault(each, len(place)) for each in timeline.terms
    ]
    terms = [{"ranks": sorted(each), "label": terms_label(each)} for each in place]
    return {"terms": terms, "carried": carried}


def _chunks(problem: Problem, shown: Sequence[int]) -> list[dict[str, Any]]:
    """Say of each chunk that is shown its origin, what it is called and how large it is."""
    chunks, origins = problem.collective.chunks, _origins(problem)
    return [
        {
            "origin": origins[number],
            "label": chunk_label(problem, number),
            "size": chunks[number].size,
            "reduced": chunks[number].reduced,
        }
        for number in shown
    ]


def still(problem: Problem) -> dict[str, Any]:
    """Return a scene in which nothing is played; the canvas tells whether it is of its drawing."""
    return {"topology": topology_to_json(problem.topology)}


def moves(timeline: Timeline) -> int:
    """Return how many transfers the scene of a replay has, about, before it is made."""
    return timeline.images * len(timeline.transfers)


def cuts(bounds: Iterable[Bound]) -> list[dict[str, Any]]:
    """Return the cuts among the witnesses of bounds, in their order, each set of devices once."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for bound in bounds:
        cut = bound.witness
        if not isinstance(cut, Cut) or cut.inside in found:
            continue
        what = "Bottleneck cut" if not found else "Cut"
        found[cut.inside] = {
            "inside": list(cut.inside),
            "links": [list(ends) for ends in cut.links],
            "bandwidth": cut.bandwidth,
            "makespan": bound.makespan,
            "label": f"{what} · {_across(bound, cut)} · {at_least(bound)}",
        }
    return list(found.values())


def at_least(bound: Bound) -> str:
    """Write a bound on the makespan, with the plans that it is about where these are not all."""
    kind = " for whole chunks" if bound.whole_chunks else ""
    return f"lower bound {text.duration(bound.makespan)}{kind}"


def _across(bound: Bound, cut: Cut) -> str:
    """Say what crosses a cut, from the side that is easier to name."""
    if len(cut.inside) == 1:
        return f"{cut.bandwidth:.4g} GB/s out of {cut.inside[0]}"
    entered = {dst for _, dst in cut.links}
    if bound.kind == "ejection" and len(entered) == 1:
        return f"{cut.bandwidth:.4g} GB/s into {entered.pop()}"
    return f"{cut.bandwidth:.4g} GB/s across"


def _step(plan: Plan, timeline: Timeline) -> float:
    """µs of one step of the player."""
    if isinstance(plan, Schedule) and timeline.makespan <= MOST_EPOCHS * plan.epoch_duration:
        return plan.epoch_duration
    return timeline.makespan / STEPS


def _origins(problem: Problem) -> list[int]:
    """Rank whose colour each chunk has: where it comes from, or whose shard of a sum it is."""
    collective = problem.collective
    count = len(collective.chunks)
    return [
        _origin(chunk, number * collective.ranks // count)
        for number, chunk in enumerate(collective.chunks)
    ]


def _origin(chunk: Chunk, share: int) -> int:
    if not chunk.reduced:
        return chunk.holders[0]
    return chunk.destinations[0] if len(chunk.destinations) == 1 else share


def _details(problem: Problem, timeline: Timeline) -> dict[str, Any] | None:
    """Say of each transfer why it started when it did, with the words to say it in."""
    if len(timeline.transfers) > MOST_DETAILED:
        return None
    found = causes(problem, timeline)
    place = {reason: i for i, reason in enumerate(Reason)}
    return {
        "rows": [
            [
                place[cause.reason],
                -1 if cause.by is None else cause.by,
                round_digits(cause.ready),
                each.epoch,
                round_digits(each.sent),
            ]
            for each, cause in zip(timeline.transfers, found, strict=True)
        ],
        "reasons": [reason.value for reason in Reason],
        "phrases": templates(),
        "critical": list(trace_critical(problem, timeline, known=found)),
    }


def _holds(problem: Problem, shown: Sequence[int]) -> dict[str, list[int]]:
    """Chunks that each GPU has at the start, by their places among those that are shown."""
    holds: dict[str, list[int]] = defaultdict(list)
    for place, number in enumerate(shown):
        for rank in problem.collective.chunks[number].holders:
            holds[problem.topology.ranks[rank]].append(place)
    return dict(holds)


def _sentences(problem: Problem, timeline: Timeline, *, step: float, epochs: int) -> list[str]:
    """Tell what sets out in each epoch, a line per sender and chunk."""
    told: list[list[Transfer]] = [[] for _ in range(epochs)]
    for each in timeline.transfers:
        told[min(epochs - 1, math.floor(each.start / step + 1e-6))].append(each)
    return [_tell(problem, transfers) for transfers in told]


def _tell(problem: Problem, transfers: list[Transfer]) -> str:
    if not transfers:
        return "Nothing sets out; what is on its way arrives."
    targets: dict[tuple[str, int], dict[str, None]] = {}
    for each in transfers:
        targets.setdefault((each.src, each.chunk), {})[each.dst] = None
    links = len({(each.src, each.dst) for each in transfers})
    chunks = len({each.chunk for each in transfers})
    lines = [f"{text.count(chunks, 'chunk')} over {text.count(links, 'link')}"]
    for (src, chunk), names in list(targets.items())[:MOST_SENTENCES]:
        to = text.enumerate_words(list(names))
        lines.append(f"{src} sends {chunk_label(problem, chunk)} to {to}")
    if len(targets) > MOST_SENTENCES:
        lines.append(f"and {len(targets) - MOST_SENTENCES} sends more")
    return "\n".join(lines)


MOST_MOVES = 100_000
"""Transfers of one film above which it shows some of its chunks: a page has to hold two."""


def key_of(row: Row) -> str:
    """Name a row of a comparison; `row_of` finds it again."""
    return f"{row.size!r} {row.method}"


def row_of(comparison: Comparison, key: str | None) -> Row | None:
    """Return the row with a key, None where there is none."""
    size, _, method = (key or "").partition(" ")
    try:
        return comparison.row(method, float(size))
    except ValueError:
        return None


def choices(comparison: Comparison) -> list[dict[str, str]]:
    """Return the rows that have a plan, size by size, the fastest first."""
    return [
        {
            "key": key_of(row),
            "label": str(row.method),
            "group": format_size(size),
            "fact": f"{format_size(size)} in {text.duration(row.result.makespan)}, "
            f"gap {text.share(comparison.gap(row))}",
        }
        for size in comparison.sizes
        for row in comparison.at(size)
        if row.result is not None
    ]


def first_pair(comparison: Comparison, size: float | None = None) -> list[str]:
    """Return the keys of two rows worth seeing beside one another.

    The fastest and the ring, or the two fastest where the ring is the fastest or is not there.

    Parameters
    ----------
    comparison
        Where they are from.
    size
        Bytes at which they are; by default the largest size with two plans.
    """
    sizes: Sequence[float] = comparison.sizes if size is None else (size,)
    for each in reversed(sizes):
        best = comparison.best(each)
        others = [row for row in comparison.at(each) if row.result is not None and row is not best]
        if best is not None and others:
            ring = [row for row in others if row.method.formulation == "ring"]
            return [key_of(best), key_of((ring or others)[0])]
    return [item["key"] for item in choices(comparison)[:1]] * 2


def films(comparison: Comparison, chosen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the films of the rows that are chosen.

    A row without a plan has no scene, and one with too many transfers shows some of its chunks.
    """
    rows = [row_of(comparison, key) for key in chosen]
    return [
        {"key": key, "scene": row and row.result and _scene(row.result)}
        for key, row in zip(chosen, rows, strict=True)
    ]


def _scene(result: Result) -> dict[str, Any]:
    return scene(result.problem, result.plan, result.timeline, most=MOST_MOVES)


def result_choices(results: Mapping[str, Result]) -> list[dict[str, str]]:
    """Return results, by what they are called, as `choices` has the rows of a comparison."""
    return [
        {
            "key": name,
            "label": name,
            "group": result.problem.topology.name,
            "fact": f"{format_size(result.problem.collective.size)} in "
            f"{text.duration(result.makespan)}, gap {text.share(result.gap)}",
        }
        for name, result in results.items()
    ]


def result_films(results: Mapping[str, Result], chosen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the films of the results that are chosen, each with the cluster that it runs on."""
    found = [results[name] for name in chosen]
    return [
        {
            "key": name,
            "scene": _scene(result),
            "drawing": drawing(result.problem.topology, layout(result.problem.topology)),
        }
        for name, result in zip(chosen, found, strict=True)
    ]


PROPS = {
    "drawing": (
        "the cluster and where its devices lie: {topology, positions}; edited on the canvas, and "
        "set by Python as one step that can be undone"
    ),
    "scene": "the schedule that is played, or None",
    "cuts": "bottleneck cuts, the tightest first",
    "marks": (
        "what is drawn over the cluster, or None: {title, groups, badges, arrows, fade}; each of "
        "the groups has {tone, devices, links, label, badge, dash} (`widgets.view_model.classes`)"
    ),
    "sketch": (
        "what a solver is to use of the cluster, or None: {drawing, off, relays}; while it is "
        "drawn, clicks pick instead of selecting"
    ),
    "picked": (
        "{picks, n}: what was clicked while a sketch is drawn, the last ones in order: "
        "{links, n}, {device, n}, or {done, n} when drawing ended; set by the canvas"
    ),
    "selection": (
        "{devices, links, hosts}: names, and ends of links; one pair of ends stands for both "
        "directions of a line"
    ),
    "focus": (
        "{chunk, link, rank, host, transfer} of the scene that is looked at, each a number, the "
        "ends of a link, a name or None; None: nothing is. Parts that are left out are None"
    ),
    "inspect": "whether the inspector is open, beneath the cluster",
    "time": "where the player is, in µs; reported at most five times a second",
    "stale": "whether the drawing is another cluster than the scene's; set by the canvas",
    "theme": "auto, light or dark; auto follows the page",
    "height": "of the whole canvas, as in CSS",
    "toolbar": "whether the floating tools are shown",
    "timeline": "whether the player's strip is shown when there is a scene",
    "locked": "whether the cluster is only looked at: devices may be moved, nothing else changed",
    "link_preset": "{bandwidth, alpha, medium} of a link that is drawn: GB/s and µs",
    "command": "{name, args, n}: what to do, with a number that differs from the last one's",
    "message": "{text, n}: the last thing that was refused and why; set by the canvas",
    "request": (
        "{name, n}: what the canvas asks of its host, such as a layout, which comes as the command "
        "move; None where nobody answers; set by the canvas"
    ),
    "trouble": (
        "{text, n}: what went wrong in Python when it heard of something, shown below the view "
        "until the text is empty"
    ),
}

PAIR_PROPS = {
    "drawing": "the cluster and where its devices lie, as for the canvas; only moves change it",
    "choices": "the schedules there are: {key, label, group, fact} each; groups have labels",
    "chosen": (
        "the keys of the two to four that are shown; set by the view, which asks for films with it"
    ),
    "films": (
        "those that are played: {key, scene}, and {drawing} where it is another cluster; the same "
        "scene goes on where it is"
    ),
    "view": "players, or difference: one player of what differs between the first two",
    "theme": "auto, light or dark; auto follows the page",
    "height": "of the whole view, as in CSS",
}
"""What players in step and their host tell one another."""

MOST_PLAYERS = 4
"""Players that go in step at most."""
