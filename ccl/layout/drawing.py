"""Default layout of a drawing that nobody has arranged yet.

Grids, tori and hypercubes are drawn as such, a torus of three dimensions as a block of sheared
layers; one-way graphs from left to right; hosts on rails as a table, a column for each host and a
row for each rail, whose links look like buses; other clusters of hosts as blocks around their
switches, pods of a fat-tree likewise; everything else as circles or as tiers of switches above
GPUs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from ccl.layout.shapes import Graph, Places, box, circle, grid, moved, satellites, spread, tiers
from ccl.topology import Topology

_GAP = 56.0
"""Pixels between the boxes of hosts; their frames take 22 of it on either side."""

_CIRCLE = 100
"""More GPUs than this are not drawn as a circle."""

_ASPECT, _WIDEST = 1.6, 2.1
"""Width over height that a drawing aims at, and at most where that makes its links clearer."""


def layout(topology: Topology) -> dict[str, tuple[float, float]]:
    """Return the position of every device.

    Returns
    -------
    dict
        Device name to (x, y) in pixels; the drawing begins at (0, 0).
    """
    if not topology.devices:
        return {}
    graph = Graph.of(topology)
    hosts = {each.name: each.host for each in topology.devices}
    places = _shape(graph, wide=bool(topology.hosts))
    if places is None and topology.hosts:
        places = _rails(graph, hosts) or _units(graph, hosts) or _cluster(graph, hosts)
    if places is None:
        places = _lines(graph) or _pods(graph)
    if places is None:
        places = _block(graph)
    left, top, _, _ = box(places, graph.kind)
    return {
        each.name: (
            float(round(places[each.name][0] - left)),
            float(round(places[each.name][1] - top)),
        )
        for each in topology.devices
    }


def _shape(graph: Graph, *, wide: bool) -> Places | None:
    """Return a line, grid, torus, hypercube or one-way graph as such, None for all else."""
    if len(graph.gpus) < len(graph.names):
        return None
    if graph.one_way:
        return _columns(graph)
    found = _lattice(graph)
    if found is None:
        return None
    shape, wrap = found
    if len(shape) == _SOLID and math.prod(shape) > 2**_SOLID:
        return _sheared(graph.gpus, shape)
    if len(shape) == 1:
        return grid(graph.gpus, columns=12, pitch=(128.0, 130.0), snake=True)
    if wide:
        return _drawn(graph.gpus, shape, pitch=(150.0, 140.0), framed=True)
    pitch = (164.0, 136.0) if wrap else (124.0, 106.0)
    return _drawn(graph.gpus, shape, pitch=pitch, bow=wrap)


def _lattice(graph: Graph) -> tuple[tuple[int, ...], bool] | None:
    """Return the sides of the lattice that the GPUs are, in order, and whether it is closed."""
    number = {name: i for i, name in enumerate(graph.gpus)}
    have = {(number[a], number[b]) for a in graph.names for b in graph.near[a]}
    for shape in _shapes(len(graph.gpus)):
        for wrap in (False, True) if len(shape) > 1 else (False,):
            if len(have) == 2 * _count(shape, wrap=wrap) and have.issuperset(
                grid_neighbours(shape, wrap=wrap)
            ):
                return shape, wrap
    most = max(map(len, graph.near.values()))
    alike = len({rate for near in graph.near.values() for rate in near.values()}) == 1
    for shape in _shapes(len(graph.gpus)) if alike else ():
        large = len(shape) > 1 and min(shape) > 2
        if large and most <= 2 * len(shape) and _twisted(have, shape):
            return shape, True
    return None


def _twisted(have: set[tuple[int, int]], shape: tuple[int, ...]) -> bool:
    """Return whether links are a grid closed in each row, and in other sides after a shift."""
    around = grid_neighbours(shape, wrap=True)
    closing = (pair for pair in around if pair[1] == pair[0] - shape[-1] + 1)
    if not have.issuperset(closing) or not have.issuperset(grid_neighbours(shape, wrap=False)):
        return False
    places = list(itertools.product(*map(range, shape)))

    def steps_or_wraps(pair: tuple[int, int]) -> bool:
        ends = zip(places[pair[0]], places[pair[1]], shape, strict=True)
        apart = [(a, b, side) for a, b, side in ends if a != b]
        steps = len(apart) == 1 and abs(apart[0][0] - apart[0][1]) == 1
        return steps or any({a, b} == {0, side - 1} for a, b, side in apart)

    return all(map(steps_or_wraps, have))


def _shapes(count: int) -> Iterator[tuple[int, ...]]:
    """Yield the sides that a line, grid, torus or hypercube of `count` devices can have."""
    if count >= 2:
        yield (count,)
    for first in range(2, count // 2 + 1):
        if count % first == 0:
            rest = count // first
            yield (first, rest)
            for second in range(2, rest // 2 + 1):
                if rest % second == 0:
                    yield (first, second, rest // second)
    bits = count.bit_length() - 1
    if bits > 3 and count == 1 << bits:
        yield (2,) * bits


def grid_neighbours(shape: tuple[int, ...], *, wrap: bool) -> Iterator[tuple[int, int]]:
    """Yield each pair of neighbours in a grid, or with `wrap` in a torus, by their numbers.

    Places are numbered with the last coordinate fastest. A side of two wraps to no second pair.
    """
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    for number, place in enumerate(itertools.product(*map(range, shape))):
        for axis, side in enumerate(shape):
            if place[axis] + 1 < side:
                yield number, number + strides[axis]
            elif wrap and side > 2:
                yield number, number - (side - 1) * strides[axis]


def _count(shape: tuple[int, ...], *, wrap: bool) -> int:
    """Return how many steps there are."""
    count = math.prod(shape)
    return sum(count // side * (side if wrap and side > 2 else side - 1) for side in shape)


def _drawn(
    names: Sequence[str],
    shape: tuple[int, ...],
    *,
    pitch: tuple[float, float],
    bow: bool = False,
    framed: bool = False,
) -> Places:
    """Draw two sides as rows and columns; the others shift whole layers, a cube as one.

    In a bowed drawing inner rows and columns stand aside, so that the links which close them
    pass beside their devices and not behind. Layers do not overlap where hosts are framed.
    """
    x, y = pitch
    vectors = [(0.0, y), (x, 0.0)]
    if shape[-3:] == (2, 2, 2) and not framed:
        vectors = [(1.2 * x, -y), (0.0, 2 * y), (2.4 * x, 0.0)]
    inner = shape[-len(vectors) :]
    axes = _layers(shape[: -len(vectors)], _extent(inner, vectors), pitch)
    axes += [_evenly(side, step) for side, step in zip(inner, vectors, strict=True)]
    places: Places = {}
    for name, place in zip(names, itertools.product(*map(range, shape)), strict=True):
        spots = [axis[number] for axis, number in zip(axes, place, strict=True)]
        row, column = place[-2:]
        right = 0.5 * x if bow and 0 < row < shape[-2] - 1 else 0.0
        up = 0.5 * y if bow and 0 < column < shape[-1] - 1 else 0.0
        places[name] = (sum(x for x, _ in spots) + right, sum(y for _, y in spots) - up)
    return places


_SOLID = 3
"""Sides of a block."""
_AISLE, _RISE = 130.0, 56.0
"""Pixels from column to column of a sheared layer, and by how much each stands higher."""


def _sheared(names: Sequence[str], shape: Sequence[int]) -> Places:
    """Draw the layers of a block side by side, seen from the left: the farther back the higher.

    Rows are so far apart that all devices of a layer have heights of their own: links between
    layers run level, and pass behind no device. Each row, column and file is evenly spaced.
    """
    columns = shape[-1]
    high = max(_RISE * columns, _RISE + 112.0)
    wide = _AISLE * (columns + 0.5)
    places = itertools.product(*map(range, shape))
    return {
        name: (wide * layer + _AISLE * column, high * row - _RISE * column)
        for name, (layer, row, column) in zip(names, places, strict=True)
    }


def _evenly(count: int, step: tuple[float, float]) -> list[tuple[float, float]]:
    return [(number * step[0], number * step[1]) for number in range(count)]


def _layers(
    sides: Sequence[int], extent: tuple[float, float], pitch: tuple[float, float]
) -> list[list[tuple[float, float]]]:
    """Return where the layers of each side begin; `extent` is what one of them covers.

    Layers step a little aside, so that links between them do not run along their rows.
    """
    (width, height), (x, y) = extent, pitch
    axes: list[list[tuple[float, float]]] = []
    across = True
    for side in reversed(sides):
        aside = (width + 1.3 * x, 0.4 * y) if across else (0.4 * x, height + 1.3 * y)
        axes.insert(0, _evenly(side, aside))
        width, height = (
            (width * side + 1.3 * x * (side - 1), height)
            if across
            else (width, height * side + 1.3 * y * (side - 1))
        )
        across = width < _ASPECT * height
    return axes


def _extent(shape: tuple[int, ...], vectors: list[tuple[float, float]]) -> tuple[float, float]:
    width = sum((side - 1) * abs(v[0]) for side, v in zip(shape, vectors, strict=True))
    height = sum((side - 1) * abs(v[1]) for side, v in zip(shape, vectors, strict=True))
    return width, height


def _columns(graph: Graph) -> Places | None:
    """Draw an acyclic graph from left to right, None if it has a cycle."""
    depth = dict.fromkeys(graph.names, 0)
    for turn in range(len(graph.names) + 1):
        deeper = {dst: depth[src] + 1 for src, dst in graph.ends if depth[dst] < depth[src] + 1}
        if not deeper:
            break
        if turn == len(graph.names):
            return None
        depth.update(deeper)
    places: Places = {}
    for column, level in enumerate(sorted(set(depth.values()))):
        members = [name for name in graph.names if depth[name] == level]
        for i, name in enumerate(members):
            places[name] = (190.0 * column, 110.0 * (i - (len(members) - 1) / 2))
    return places


def _block(graph: Graph) -> Places:
    """Draw devices that belong together: a circle, hubs with GPUs around them, or tiers."""
    gpus, hubs = graph.gpus, graph.hubs
    others = [name for name in graph.names if name not in graph.is_gpu]
    joined = any(other in graph.is_gpu for name in gpus for other in graph.near[name])
    if not gpus:
        return spread(others, graph, width=1200.0)
    if len(hubs) == len(others):
        if not others and not joined:
            return grid(gpus, columns=math.ceil(math.sqrt(len(gpus))), pitch=(92.0, 80.0))
        if len(hubs) == 1 and 5 <= len(gpus) <= 8 and not joined:
            return _cup(gpus, hubs[0])
        if not others and len(gpus) > _CIRCLE:
            columns = math.ceil(math.sqrt(_ASPECT * len(gpus)))
            return grid(graph.walk(), columns=columns, pitch=(110.0, 96.0), snake=True)
        return circle(graph.walk(), hubs, graph)
    if joined and all(any(other in graph.is_gpu for other in graph.near[name]) for name in others):
        return satellites(graph)
    return tiers(graph)


def _cup(gpus: Sequence[str], hub: str) -> Places:
    """Draw up to eight GPUs in the shape of a cup around a switch, open to what is above."""
    spots = {
        5: ((-190, 30), (-150, 150), (0, 190), (150, 150), (190, 30)),
        6: ((-190, 0), (-190, 105), (-62, 165), (62, 165), (190, 105), (190, 0)),
        7: ((-190, 0), (-190, 100), (-120, 195), (0, 195), (120, 195), (190, 100), (190, 0)),
        8: (
            *((-190, 0), (-190, 100), (-165, 200), (-55, 235)),
            *((55, 235), (165, 200), (190, 100), (190, 0)),
        ),
    }[len(gpus)]
    places = {name: (float(x), float(y)) for name, (x, y) in zip(gpus, spots, strict=True)}
    return {**places, hub: (0.0, 60.0)}


def _cluster(graph: Graph, hosts: dict[str, str | None]) -> Places:
    """Draw each host as a block, and the switches that join hosts between or above them."""
    members: dict[str, list[str]] = {}
    loose: list[str] = []
    for name in graph.names:
        host = hosts[name]
        if host is not None:
            members.setdefault(host, []).append(name)
        elif name in graph.is_gpu:
            members[f"\0{name}"] = [name]
        else:
            loose.append(name)
    return _around(loose, list(members.values()), graph)


def _around(loose: Sequence[str], members: list[list[str]], graph: Graph) -> Places:
    """Draw blocks of devices, and the switches that join them between or above them."""
    blocks = [_block(graph.within(names)) for names in members]
    if not loose and 3 <= len(blocks) <= 12 and _all_meet(graph, members):
        return _wheel(blocks, graph)
    levels = graph.levels([name for each in members for name in each])
    depth = max((levels[name] for name in loose), default=0)
    middle = depth == 1 and len(blocks) > 2
    rows = _rows(blocks, graph, even=middle)
    width = max(sum(_size(each, graph)[0] + _GAP for each in row) for row in rows)
    strips = [
        spread([name for name in loose if levels[name] == level], graph, width=width)
        for level in range(depth, 0, -1)
    ]
    if not middle:
        return _stacked([*([each] for each in strips), *rows], graph)
    room = _room(rows, strips, graph, width=width)
    half = len(rows) // 2
    # Blocks open upwards; those above the switches are turned over to open to them.
    upper = [[{k: (x, -y) for k, (x, y) in each.items()} for each in row] for row in rows[:half]]
    return _stacked([*upper, *([each] for each in strips), *rows[half:]], graph, room=room)


_TABLE = range(2, 25)
"""Numbers of hosts that are drawn as the columns of a table."""
_OVAL = 16
"""GPUs of a host with links among them that may stand in an oval."""


def _rails(graph: Graph, hosts: Mapping[str, str | None]) -> Places | None:
    """Draw a column for each host and a row for each rail, whose switch stands in the middle.

    A rail is a switch that is joined with one GPU of each host; None unless all switches between
    hosts are that, or stand above the rails. One switch that is joined with all GPUs of hosts with
    links inside is drawn likewise: these run along the rows.
    """
    columns: dict[str, list[str]] = {}
    for name in graph.names:
        columns.setdefault(hosts[name] or "", []).append(name)
    loose = columns.pop("", [])
    inner = [[name for name in each if name not in graph.is_gpu] for each in columns.values()]
    if len(columns) not in _TABLE or any(len(each) > 1 for each in inner):
        return None
    gpus = [[name for name in each if name in graph.is_gpu] for each in columns.values()]
    linked = any(graph.gpus_at(name) for name in graph.gpus)
    rails = _rails_of(graph, [name for name in loose if graph.gpus_at(name)], gpus)
    if rails is None or (linked and (any(inner) or len(gpus[0]) > _OVAL)):
        return None
    rows, flat = rails
    if flat and (not linked or len(loose) > 1):
        return None
    order = (
        [rows[name] for name in graph.within(gpus[0]).walk()] if linked else [*range(len(gpus[0]))]
    )
    spots = _oval(order) if linked else {row: (0.0, row) for row in order}
    return _table(graph, list(columns.values()), (rows, spots), loose=loose)


def _rails_of(
    graph: Graph, loose: Sequence[str], gpus: Sequence[Sequence[str]]
) -> tuple[dict[str, int], bool] | None:
    """Return the rail of each GPU and each switch, and whether all have the same switch."""
    many = len(gpus[0])
    if {len(each) for each in gpus} != {many} or many * len(gpus) != len(graph.gpus):
        return None
    if len(loose) == 1 and many > 1 and len(graph.gpus_at(loose[0])) == len(graph.gpus):
        return {name: i for each in gpus for i, name in enumerate(each)}, True
    rows = {name: i for i, name in enumerate(loose)}
    for each in gpus:
        found = [[rows[other] for other in graph.near[name] if other in rows] for name in each]
        if sorted(found) != [[i] for i in range(len(loose))]:
            return None
        rows |= {name: rail for name, (rail,) in zip(each, found, strict=True)}
    return (rows, False) if len(loose) > 1 else None


def _oval(order: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return where the GPU of each rail stands in its host, in an oval: each has its own row."""
    half = len(order) / 2
    spots = {}
    for i, rail in enumerate(order):
        row = 2 * i if i < half else 2 * (len(order) - 1 - i) + 1
        aside = _ASIDE * math.sqrt(1 - ((row + 0.5) / half - 1) ** 2)
        spots[rail] = (aside if i < half else -aside, float(row))
    return spots


_COLUMN, _ROWS, _ASIDE = 190.0, (84.0, 150.0), 170.0
"""Pixels from host to host, from rail to rail (the more hosts the more), half across an oval."""


def _table(
    graph: Graph,
    columns: Sequence[Sequence[str]],
    rails: tuple[Mapping[str, int], Mapping[int, tuple[float, float]]],
    *,
    loose: Sequence[str],
) -> Places:
    """Draw hosts left and right of the switches between them."""
    rows, spots = rails
    wide = _COLUMN + 2 * max(abs(x) for x, _ in spots.values())
    half = math.ceil(len(columns) / 2)
    high = wide * (len(columns) + 1) / _ASPECT / (len(spots) + 3)
    high = min(_ROWS[1], max(_ROWS[0] - 12.0 * (wide > _COLUMN), high))
    middle = (_COLUMN + wide) / 2 if len(columns) > 1 else 0.0
    places: Places = {}
    for i, members in enumerate(columns):
        x = wide * (i - half + 0.5) + (middle - wide / 2) * (1 if i >= half else -1)
        for name in members:
            aside, row = spots[rows[name]] if name in rows else (0.0, -1.0)
            places[name] = (x + aside, high * row)
    upper = [name for name in loose if name not in rows]
    if len(upper) == len(loose):  # all have the same switch
        return {**places, upper[0]: (0.0, high * (len(spots) - 1) / 2)}
    places |= {name: (0.0, high * spots[rows[name]][1]) for name in loose if name in rows}
    if upper:
        block = spread(upper, graph, width=1200.0)
        bottom = box(block, graph.kind)[3]
        places |= {name: (x, y - bottom - 2.0 * high) for name, (x, y) in block.items()}
    return places


_POD = 8
"""GPUs of a pod at least."""


def _pods(graph: Graph) -> Places | None:
    """Draw what the topmost switches join as blocks around these, None where that is one piece."""
    levels = graph.levels(graph.gpus)
    top = max(levels.values(), default=0)
    if top < 3:
        return None
    below = graph.within([name for name in graph.names if levels[name] < top])
    pods = below.pieces()
    gpus = {len([name for name in pod if name in graph.is_gpu]) for pod in pods}
    if len(pods) < 4 or len(gpus) > 1 or min(gpus) < _POD:
        return None
    return _around([name for name in graph.names if levels[name] == top], pods, graph)


def _lines(graph: Graph) -> Places | None:
    """Draw GPUs as a grid with a switch before each row and column; None where that is not it.

    The first switches are joined with GPUs of one row each, the others with those of one column.
    """
    switches = [name for name in graph.names if name not in graph.is_gpu]
    number = {name: i for i, name in enumerate(graph.gpus)}
    for rows in range(2, len(switches) - 1):
        columns = len(switches) - rows
        if rows * columns != len(graph.gpus):
            continue
        across = {
            divmod(number.get(b, -1), columns)[0] - i
            for i, a in enumerate(switches[:rows])
            for b in graph.near[a]
        }
        down = {
            number.get(b, -1) % columns - i
            for i, a in enumerate(switches[rows:])
            for b in graph.near[a]
        }
        if across == down == {0}:
            x, y = 150.0, 120.0
            places = grid(graph.gpus, columns=columns, pitch=(x, y))
            places |= {name: (-1.1 * x, y * (i - 0.5)) for i, name in enumerate(switches[:rows])}
            places |= {name: (x * (i - 0.5), -y) for i, name in enumerate(switches[rows:])}
            return places
    return None


def _units(graph: Graph, hosts: Mapping[str, str | None]) -> Places | None:
    """Draw hosts that share rails as tables side by side; None where all share the same rails."""
    loose = [name for name in graph.names if hosts[name] is None]
    leaves = [name for name in loose if graph.gpus_at(name)]
    near: dict[str, set[str]] = {}
    for leaf in leaves:
        for name in graph.gpus_at(leaf):
            near.setdefault(hosts[name] or "", set()).add(leaf)
    rails = {host: frozenset(found) for host, found in near.items()}
    units = list(dict.fromkeys(rails.values()))
    if len(units) < 2 or sum(map(len, units)) != len(leaves):
        return None
    places: Places = {}
    for unit in units:
        members = [n for n in graph.names if n in unit or rails.get(hosts[n] or "") == unit]
        table = _rails(graph.within(members), hosts)
        if table is None:
            return None
        right = box(places, graph.kind)[2] + 2 * _GAP if places else 0.0
        left, top, _, _ = box(table, graph.kind)
        places |= {name: (x - left + right, y - top) for name, (x, y) in table.items()}
    upper = [name for name in graph.names if name not in places]
    if not upper:
        return places
    strip = spread(upper, graph, width=box(places, graph.kind)[2])
    return _stacked([[strip], [places]], graph)


def _all_meet(graph: Graph, members: list[list[str]]) -> bool:
    """Return whether links join every two of the hosts."""
    home = {name: i for i, names in enumerate(members) for name in names}
    pairs = {(home[a], home[b]) for a in graph.names for b in graph.near[a] if home[a] != home[b]}
    return len(pairs) == len(members) * (len(members) - 1)


def _wheel(blocks: list[Places], graph: Graph) -> Places:
    """Draw blocks in a circle."""
    reach = max(math.hypot(*_size(each, graph)) for each in blocks) + _GAP
    radius = reach / (2 * math.sin(math.pi / len(blocks)))
    places: Places = {}
    for i, block in enumerate(blocks):
        angle = 2 * math.pi * i / len(blocks) - math.pi / 2
        places |= moved(block, graph.kind, (radius * math.cos(angle), radius * math.sin(angle)))
    return places


def _rows(blocks: list[Places], graph: Graph, *, even: bool) -> list[list[Places]]:
    """Break blocks into rows whose drawing comes nearest to the shape aimed at."""
    sizes = [_size(each, graph) for each in blocks]
    wide = max(width for width, _ in sizes) + _GAP
    high = max(height for _, height in sizes) + _GAP

    def fit(rows: int) -> tuple[float, int]:
        columns = math.ceil(len(blocks) / rows)
        # The switches between or above take about a block's height at most.
        ratio = columns * wide / (rows * high + (200.0 if even else 0.0))
        return abs(math.log(ratio / _ASPECT)), rows

    counts = [rows for rows in range(1, len(blocks) + 1) if not even or rows % 2 == 0]
    best = min(counts, key=fit)
    columns = math.ceil(len(blocks) / best)
    return [blocks[i : i + columns] for i in range(0, len(blocks), columns)]


def _room(rows: list[list[Places]], strips: list[Places], graph: Graph, *, width: float) -> float:
    """Return the pixels above and below what stands between two rows of many blocks.

    Links that fan out from there are the steeper, and the easier told apart, the more there are.
    """
    if len(rows) > 2 or len(strips[0]) == 1:
        return 0.0
    high = sum(max(_size(each, graph)[1] for each in row) + 1.4 * _GAP for row in (*rows, strips))
    return max(0.0, (width / _WIDEST - high) / 2)


def _stacked(rows: list[list[Places]], graph: Graph, *, room: float = 0.0) -> Places:
    """Draw rows of blocks one under the other, each centred; `room` is around all but the outer."""
    places: Places = {}
    top = 0.0
    most = max(map(len, rows))
    for number, row in enumerate(rows):
        sizes = [_size(each, graph) for each in row]
        left = -(sum(width for width, _ in sizes) + _GAP * (len(row) - 1)) / 2
        if 1 < len(row) < most and (most - len(row)) % 2:
            left -= (sizes[0][0] + _GAP) / 2  # in the columns of the others
        top += room * (number > 0)
        height = max(high for _, high in sizes)
        for block, (width, _) in zip(row, sizes, strict=True):
            places |= moved(block, graph.kind, (left + width / 2, top + height / 2))
            left += width + _GAP
        top += height + 1.4 * _GAP
    return places


def _size(places: Places, graph: Graph) -> tuple[float, float]:
    left, top, right, bottom = box(places, graph.kind)
    return right - left, bottom - top
