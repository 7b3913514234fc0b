"""A sketch as a user draws it: what a click changes, what it says in words, what the canvas shows.

Sketches are kept in their plain form (`ccl.serialization.sketches`), as the page and results hold
them. Links are switched off both ways; a relay serves the GPUs of its host, each through the
nearest one by rank.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ccl import text
from ccl.errors import CclError, ProblemError
from ccl.serialization.sketches import Pair, Sketch, sketch_from_json, sketch_to_json
from ccl.topology import Topology
from designer.session import topology_of
from designer.shell.request import problem_of, read_request
from formulations import default_sketch, formulation, option_fields

Json = dict[str, Any]
Plain = Mapping[str, Any] | None
"""The plain form, or None where the formulation derives a sketch of its own."""

Sketches = Mapping[str, Any] | None
"""What the page keeps: for each formulation the option that is a sketch, with its plain form."""

DERIVED = "derived from the cluster"

_OFFSET = re.compile(r"(\d{1,6})\s*(?:in|of|/)\s*(\d{1,6})")


def sketch_option(name: str | None) -> str | None:
    """Return the option of a formulation that is a sketch, or None."""
    if not name:
        return None
    rows = option_fields(formulation(name).options)
    return next((row.name for row in rows if row.kind == "sketch"), None)


def stored_sketch(sketches: Sketches, name: str | None) -> Json | None:
    """Return the sketch that is kept for a formulation, or None."""
    found = (sketches or {}).get(name or "", {}).get(sketch_option(name) or "")
    return None if found is None else dict(found)


def keep(sketches: Sketches, name: str, value: Plain) -> Json:
    """Return the sketches with another one for a formulation, or with none."""
    others = {each: found for each, found in (sketches or {}).items() if each != name}
    option = sketch_option(name)
    return others if option is None or value is None else {**others, name: {option: dict(value)}}


def begun(drawing: Mapping[str, Any], request: Mapping[str, Any] | None) -> Json:
    """Return the sketch that is derived for a drawing, which the first click changes."""
    try:
        return sketch_to_json(
            default_sketch(problem_of(drawing["topology"], read_request(request)))
        )
    except CclError:  # the assessment says what is wrong with the request
        return {}


def described(value: Plain) -> str:
    """Say what sketch is in use: ``derived from the cluster`` or ``own: 3 links off, uc-min``."""
    if value is None:
        return DERIVED
    try:
        sketch = sketch_from_json(value)
    except CclError as error:
        return f"not readable: {error}"
    return f"own: {', '.join(_parts(sketch)) or 'nothing is left out'}"


def _parts(sketch: Sketch) -> list[str]:
    off = len({frozenset(pair) for pair in sketch.without})
    relays = len({relay for _, relay in sketch.relays})
    between = None if sketch.between is None else len(sketch.between)
    said = [
        (off > 0, f"{text.count(off, 'link')} off"),
        (relays > 0, text.count(relays, "relay")),
        (bool(sketch.forced), f"{text.count(len(sketch.forced), 'pair')} forced"),
        (sketch.switches != "all", sketch.switches),
        (bool(sketch.offsets), f"symmetry {offsets_text(sketch.offsets)}"),
        (between is not None, text.count(between or 0, "pair") + " between hosts"),
        (sketch.chunks is not None, f"{text.count(sketch.chunks or 0, 'chunk')} per shard"),
        (sketch.instances != 1, f"{text.count(sketch.instances, 'instance')}"),
    ]
    return [words for holds, words in said if holds]


def offsets_text(offsets: Iterable[Sequence[int]]) -> str:
    """Write symmetry offsets as they are typed: ``2 in 16, 16 in 32``."""
    return ", ".join(f"{by} in {block}" for by, block in offsets)


def read_offsets(typed: str) -> tuple[tuple[int, int], ...]:
    """Read what `offsets_text` writes.

    Raises
    ------
    ProblemError
        If a part of it is not an offset.
    """
    parts = [part.strip() for part in typed.split(",") if part.strip()]
    found = [_OFFSET.fullmatch(part) for part in parts]
    for part, match in zip(parts, found, strict=True):
        if match is None:
            raise ProblemError(
                f"{part!r} is no symmetry of ranks; write it like 2 in 16: by 2 in blocks of 16"
            )
    return tuple((int(match[1]), int(match[2])) for match in found if match is not None)


def with_links(value: Plain, links: Iterable[Pair], topology: Topology) -> Json | None:
    """Switch links off, with their opposites; on again if all of them are off."""
    sketch = _made(value)
    both = [ends for src, dst in links for ends in ((src, dst), (dst, src))]
    chosen = [ends for ends in dict.fromkeys(both) if ends in topology.link_index]
    kept = tuple(ends for ends in sketch.without if ends not in set(chosen))
    off = set(chosen) <= set(sketch.without)
    return _plain(replace(sketch, without=kept if off else (*kept, *chosen)))


def with_relay(value: Plain, gpu: str, topology: Topology) -> Json | None:
    """Make a GPU a relay of its host, or no relay again.

    Raises
    ------
    ProblemError
        If it is in no host, or cannot send to another one.
    """
    sketch = _made(value)
    host = topology.device(gpu).host
    if gpu not in topology.rank or host is None:
        raise ProblemError(
            f"{gpu} is no GPU of a host; a relay sends what the GPUs of its host have"
        )
    inside = [name for name in topology.ranks if topology.device(name).host == host]
    if len(inside) == len(topology.ranks):
        raise ProblemError(f"all GPUs are in {host}; a relay sends to other hosts")
    relays = {relay for _, relay in sketch.relays if relay in inside}
    if gpu not in relays:
        if sketch.between is not None:
            _can_send(gpu, inside, sketch.between)
        if not _leaves(gpu, topology):
            raise ProblemError(
                f"no path leads from {gpu} out of {host} but through other GPUs; choose one of them"
            )
    relays ^= {gpu}
    others = tuple(pair for pair in sketch.relays if pair[0] not in inside)
    return _plain(replace(sketch, relays=(*others, *_nearest(inside, relays))))


def after(
    value: Plain, base: Plain, *, picks: Iterable[Mapping[str, Any]], topology: Json
) -> tuple[Json | None, list[str]]:
    """Return a sketch after something was picked on the canvas.

    Parameters
    ----------
    value
        The user's own, or None.
    base
        The derived one, which the first change begins with.
    picks
        ``links`` or ``device`` of each, as the canvas says it.
    topology
        What is drawn, as JSON.

    Returns
    -------
        The sketch, None where it is the derived one, and why picks changed nothing.
    """
    now = None if value is None else dict(value)
    made = topology_of(topology)
    refused = []
    for each in picks:
        begun = base if now is None else now
        try:
            if "device" in each:
                changed = with_relay(begun, each["device"], made)
            else:
                changed = with_links(begun, [(src, dst) for src, dst in each["links"]], made)
        except CclError as error:
            refused.append(str(error))
            continue
        now = _own(changed, base)
    return now, refused


def typed(value: Plain, base: Plain, form: Mapping[str, Any], topology: Json) -> Json | None:
    """Return a sketch with what stands in the fields; `value`, `base`, `topology` as in `after`.

    Raises
    ------
    CclError
        If the offsets cannot be read or do not fit the topology.
    """
    changed = with_form(
        base if value is None else value,
        switches=form.get("switches") or "all",
        offsets=form.get("offsets") or "",
        topology=topology_of(topology),
    )
    return _own(changed, base)


def _own(changed: Plain, base: Plain) -> Json | None:
    """Return None for what is the derived sketch, and {} where the user's own says nothing."""
    return None if (changed or {}) == (base or {}) else dict(changed or {})


def _can_send(gpu: str, inside: Sequence[str], between: Iterable[Pair]) -> None:
    """Refuse a relay that the sketch lets send to nobody."""
    senders = {src for src, _ in between}
    if gpu not in senders:
        able = [name for name in inside if name in senders]
        raise ProblemError(
            f"in this sketch {gpu} sends to no other host; "
            + (f"choose {text.listing(able, 6)}, or clear it" if able else "clear it first")
        )


def _leaves(gpu: str, topology: Topology) -> bool:
    """Say whether a way leads from a GPU to one of another host, through no GPU of its own."""
    host = topology.device(gpu).host
    near, seen = [gpu], {gpu}
    while near:
        for link in topology.links_out[near.pop()]:
            end = topology.device(link.dst)
            if end.kind == "gpu" and end.host != host:
                return True
            if end.kind != "gpu" and end.name not in seen:
                seen.add(end.name)
                near.append(end.name)
    return False


def _nearest(inside: Sequence[str], relays: set[str]) -> tuple[Pair, ...]:
    """Give each GPU of a host the relay nearest by rank, the lower of two."""
    places = {name: place for place, name in enumerate(inside)}
    ordered = [name for name in inside if name in relays]
    if not ordered:
        return ()
    return tuple(
        (name, min(ordered, key=lambda relay: abs(places[relay] - places[name]))) for name in inside
    )


def with_form(value: Plain, *, switches: str, offsets: str, topology: Topology) -> Json | None:
    """Take over what stands in the fields of the card.

    Raises
    ------
    CclError
        If the offsets cannot be read or do not fit the topology.
    """
    form = {"switches": switches, "offsets": [list(each) for each in read_offsets(offsets)]}
    sketch = sketch_from_json({**(value or {}), **form})
    sketch.check(topology)
    return _plain(sketch)


def fitted(value: Plain, topology: Topology) -> tuple[Json | None, str]:
    """Drop what names something that is not drawn any more.

    Returns
    -------
        What is left of the sketch, and in one sentence what was dropped; empty where nothing was.
    """
    if value is None:
        return None, ""
    try:
        sketch = sketch_from_json(value)
    except CclError as error:
        return None, f"the sketch was dropped: {error}"

    def there(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
        return tuple(pair for pair in pairs if all(name in topology.rank for name in pair))

    ranks = len(topology.ranks)
    kept = replace(
        sketch,
        between=None if sketch.between is None else there(sketch.between),
        without=tuple(ends for ends in sketch.without if ends in topology.link_index),
        forced=there(sketch.forced),
        relays=there(sketch.relays),
        offsets=tuple(each for each in sketch.offsets if ranks and ranks % each[1] == 0),
    )
    lost = _lost(sketch, kept)
    if not lost:
        return dict(value), ""
    # Of a cluster with other names nothing is left, and then nobody may send.
    if sketch.between and not kept.between:
        kept = replace(kept, between=None)
    return _plain(kept), f"the sketch lost {text.listing(lost, 4)}, which the drawing has no more"


def all_fitted(sketches: Sketches, topology: Topology) -> tuple[Json, str]:
    """Fit every sketch that is kept; see `fitted`."""
    left: Json = {}
    said = []
    for name, options in (sketches or {}).items():
        for option, value in options.items():
            fits, words = fitted(value, topology)
            said += [words] if words else []
            if fits is not None:
                left[name] = {option: fits}
    return left, "; ".join(dict.fromkeys(said))


def _lost(before: Sketch, after: Sketch) -> list[str]:
    """Name what of a sketch is gone."""
    links = [ends for ends in before.without if ends not in set(after.without)]
    lines = list(dict.fromkeys(tuple(sorted(ends)) for ends in links))
    shown = [f"{src}–{dst}" for src, dst in lines[:3]]
    many = [text.count(len(lines) - 3, "other link")] if len(lines) > 3 else []
    pairs = len((*(before.between or ()), *before.forced, *before.relays)) - len(
        (*(after.between or ()), *after.forced, *after.relays)
    )
    gone = [each for each in before.offsets if each not in after.offsets]
    return [
        *shown,
        *many,
        *([f"{text.count(pairs, 'pair')} of GPUs"] if pairs else []),
        *([f"the symmetry {offsets_text(gone)}"] if gone else []),
    ]


def sketch_marks(value: Plain, *, drawing: bool) -> Json | None:
    """Return what the canvas draws of a sketch, None where there is nothing to draw.

    Parameters
    ----------
    value
        The sketch, or None.
    drawing
        Whether clicks change it.
    """
    if value is None and not drawing:
        return None
    sketch = _made(value)
    relays: dict[str, int] = {}
    for _, relay in sketch.relays:
        relays[relay] = relays.get(relay, 0) + 1
    return {"drawing": drawing, "off": [list(ends) for ends in sketch.without], "relays": relays}


def _made(value: Plain) -> Sketch:
    """Make a sketch to change; one that cannot be read begins anew."""
    try:
        return sketch_from_json(value or {})
    except CclError:
        return Sketch()


def _plain(sketch: Sketch) -> Json | None:
    """Return the plain form; a sketch that says nothing is none."""
    return sketch_to_json(sketch) or None
