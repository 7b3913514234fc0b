"""Direct networks: GPUs, or routers with GPUs, linked with one another by an algebraic rule.

Every docstring gives the rule of the vertices, degree, diameter, bisection or a known optimum, and
the source; n is the number of vertices, d the links out of each. Beside all of them stands the
bound of Moore on the mean distance (`ccl.bound.moore_mean`).
"""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ccl.errors import ProblemError
from ccl.topology import Declared, Link, Topology
from gallery.build import Wire, check, make_gpus, topology
from gallery.declared import interchange, moved
from gallery.entry import Entry, Figure
from gallery.expansions import concentrate
from gallery.finite_field import Field, finite_field
from gallery.lattices import hermite_matrix, moves_of
from gallery.toys import written

_BANDWIDTH, _ALPHA = 50.0, 0.7

_TRUNK = 64
"""Most links of a GPU, and most parallel ones."""


def circulant(
    gpus: int = 16,
    *,
    jumps: tuple[int, ...] = (1, 6),
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
) -> Topology:
    """Join GPUs in a circle with those so many places on.

    GPU i has links to i + s and i - s mod n for each jump s: d = 2 jumps, and one less for a jump
    of half the circle. It hangs together where no number but 1 divides n and all jumps. With two
    jumps at most 2 k^2 + 2 k + 1 GPUs are within k links, and the jumps k and k + 1 reach that.
    The bisection is at most twice the sum of the jumps, two-way links. Source: Bermond, Comellas,
    Hsu, Distributed loop computer networks: a survey, JPDC 1995.

    Raises
    ------
    ProblemError
        If a jump is out of range or given twice, or the GPUs are not all joined.
    """
    check("gpus of a circulant network", gpus, least=3)
    for jump in jumps:
        check(f"jump of a circulant network of {gpus}", jump, least=1, most=gpus // 2)
    if len(set(jumps)) < len(jumps):
        raise ProblemError(f"jumps {written(jumps)} name one twice; give each once")
    if (divisor := math.gcd(gpus, *jumps)) > 1:
        raise ProblemError(
            f"jumps {written(jumps)} do not join all {gpus} GPUs, as {divisor} divides all of "
            f"these numbers; add a jump that it does not divide"
        )
    pairs = [
        (i, (i + jump) % gpus)
        for jump in jumps
        for i in range(gpus // 2 if 2 * jump == gpus else gpus)
    ]
    turns = [[(i + 1) % gpus for i in range(gpus)], [-i % gpus for i in range(gpus)]]
    name = f"Circulant of {gpus} (jumps {written(jumps)})"
    return _both_directions(name, gpus, pairs, _wire(bandwidth, alpha), turns=turns)


def twisted_torus(
    shape: tuple[int, ...] = (4, 4),
    *,
    twists: tuple[int, ...] = (2,),
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
) -> Topology:
    """Close the rows and columns of a grid after a shift along later dimensions.

    The vertices are Z^D modulo the rows of an upper triangular matrix: `shape` is its diagonal, and
    `twists` what stands right of it, row by row. Going as far as a side is long along a dimension
    leads to a place that the twists of its row are short of the first along the later dimensions.
    Every Cayley network of an abelian group is one (`gallery.lattices`), a circulant one too; the
    twisted slices of TPU v4 have sides n, n, 2 n and twists 0, n, n. d = 2 D; where two links of a
    GPU lead to the same one they count as two, and a link to itself is left out. A torus of 2 a x a
    that is twisted by a has the diameter a, without the twist 3 a / 2. Sources: Cámara et al.,
    Twisted torus topologies for enhanced interconnection networks, IEEE TPDS 2010; Jouppi et al.,
    TPU v4, ISCA 2023, arXiv 2304.01433.

    Raises
    ------
    ProblemError
        If a number is out of range, or there are not as many twists as pairs of dimensions.
    """
    matrix = hermite_matrix(shape, twists)
    gpus = math.prod(shape)
    check(f"GPUs of shape {written(shape)}", gpus, least=2)
    *steps, negation = moves_of(matrix)
    pairs = [(i, int(step[i])) for step in steps for i in range(gpus) if step[i] != i]
    name = f"Twisted torus {written(shape)} (twists {written(twists)})"
    turns = [each.tolist() for each in (*steps, negation)]
    return _both_directions(name, gpus, pairs, _wire(bandwidth, alpha), turns=turns)


def hyperx(
    shape: tuple[int, ...] = (4, 4),
    *,
    trunks: tuple[int, ...] = (1,),
    concentration: int = 0,
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
) -> Topology:
    """Join each vertex of a grid with all others of its row, column and so on.

    The product of full meshes: d is the sum of the sides less 1 each, the diameter the number of
    dimensions; along an even side s there is a cut into halves of n s / 4 two-way links. A vertex
    is a GPU (the nD full mesh of UB-Mesh), or a router with GPUs; links along a dimension may be
    parallel ones. Sources: Ahn et al., HyperX, SC 2009; UB-Mesh, arXiv 2503.20377.

    Raises
    ------
    ProblemError
        If a number is out of range.
    """
    widths = _widths(shape, trunks)
    wire = _wire(bandwidth, alpha)
    places = np.arange(math.prod(shape)).reshape(shape)
    gpus = make_gpus(places.size)
    names = [each.name for each in gpus]
    links: list[Link] = []
    declared: list[Declared] = []
    for axis, width in enumerate(widths):
        planes = np.moveaxis(places, axis, 0).reshape(shape[axis], -1).tolist()
        for plane, other in itertools.combinations(planes, 2):
            for a, b in zip(plane, other, strict=True):
                links += wire.times(width).join(names[a], names[b])
        declared.append(interchange([names[i] for i in plane] for plane in planes))
    for one, two in itertools.combinations(range(len(shape)), 2):
        if (shape[one], widths[one]) == (shape[two], widths[two]):
            declared.append(moved(names, places.swapaxes(one, two).ravel().tolist()))
    made = topology(f"HyperX {written(shape)}", gpus, links, declared=declared)
    remarks = [] if set(widths) == {1} else [f"trunks {written(trunks)}"]
    return _at_routers(made, concentration, wire=wire, remarks=remarks)


def _widths(shape: tuple[int, ...], trunks: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parallel links along each dimension of a HyperX."""
    if not shape or min(shape) < 1 or len(shape) > 6:
        raise ProblemError(
            f"shape {written(shape)} is not one; give up to 6 whole numbers, such as 4x4"
        )
    vertices = math.prod(shape)
    check(f"vertices of shape {written(shape)}", vertices, least=2)
    check("links of a HyperX", vertices * (sum(shape) - len(shape)) // 2, least=1, most=1_000_000)
    widths = trunks * len(shape) if len(trunks) == 1 else trunks
    if len(widths) != len(shape) or not 1 <= min(widths) <= max(widths) <= _TRUNK:
        raise ProblemError(
            f"trunks {written(trunks)} of a HyperX {written(shape)} must be one number from 1 to "
            f"{_TRUNK}, or one for each dimension"
        )
    return widths


def slim_fly(
    order: int = 3, *, concentration: int = 0, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """Join every two vertices by one or two links, with nearly as few links as that can take.

    The graph of McKay, Miller and Širáň over the field of q = 4 w + e elements, e from -1 to 1: the
    vertices are (0, x, y) and (1, m, c), joined where y = m x + c; besides, those that share the
    first two where y - y' is in a set X, c - c' in another X'. With a primitive element z these are
    its even and odd powers; for e = -1 X is its even powers below 2 w and the odd ones from 2 w - 1
    to 4 w - 3, and X' is z X. n = 2 q^2, d = (3 q - e) / 2, the diameter 2: about 8/9 of the most
    vertices that d allows; q = 5 is the graph of Hoffman and Singleton, which no other with its d
    and diameter exceeds. With routers about d / 2 GPUs each keep the links busy. Sources: McKay,
    Miller, Širáň, Journal of Combinatorial Theory B 1998; Besta, Hoefler, SC 2014; the rule is in
    arXiv 1912.08968.

    Raises
    ------
    ProblemError
        If the order is out of range or no power of a prime.
    """
    check("order of a Slim Fly", order, least=3, most=64)
    field, wire = finite_field(order), _wire(bandwidth, alpha)
    pairs = _slim_fly_pairs(field)
    name = f"Slim Fly of order {order}"
    turns = _slim_fly_symmetry(field)
    made = _both_directions(name, 2 * order**2, pairs, wire, turns=turns)
    return _at_routers(made, concentration, wire=wire)


def _difference_sets(field: Field) -> tuple[set[int], set[int]]:
    """Return the sets X and X'."""
    exponents = list(range(0, field.order - 1, 2))
    if field.order % 4 == 3:
        quarter = (field.order + 1) // 4
        exponents = [*range(0, 2 * quarter, 2), *range(2 * quarter - 1, 4 * quarter - 2, 2)]
    even, odd = ({field.power(each + first) for each in exponents} for first in (0, 1))
    return even, odd


def _slim_fly_pairs(field: Field) -> list[tuple[int, int]]:
    """Return the linked vertices; (side, a, b) has the number (side q + a) q + b."""
    first, second = np.indices((field.order, field.order)).reshape(2, -1)
    number = first * field.order + second
    found: list[np.ndarray] = []
    for side, differences in enumerate(_difference_sets(field)):
        for each in differences:
            other = first * field.order + field.sums[second, each]
            once = number < other
            found.append(np.stack([number, other])[:, once] + side * field.order**2)
    for slope in range(field.order):
        crossing = field.sums[field.products[slope, first], second]
        below = field.order**2 + slope * field.order + second
        found.append(np.stack([first * field.order + crossing, below]))
    return [(a, b) for a, b in np.concatenate(found, axis=1).T.tolist()]


def _slim_fly_symmetry(field: Field) -> list[list[int]]:
    """Return moves that keep y = m x + c, X and X'.

    They are y + b and c + b; x + b and c - m b; y + b x and m + b; z x and m / z. Then with a
    power s of z and what sums and products commute with, written f: where s f(X) = X and s f(X') =
    X' they are f(x), s f(y), s f(m) and s f(c); where it exchanges these sets, (0, x, y) goes to
    (1, f(x), s f(y)) and (1, m, c) to (0, -s f(m), s f(c)). For e = 1, where s = z does that, and
    for q = 3 and q = 4 all vertices are in one orbit then, else in two.
    """
    sums, products, opposite = field.sums, field.products, field.negatives()
    x, y = np.indices((field.order, field.order)).reshape(2, -1)

    def move(*images: tuple[int, np.ndarray, np.ndarray]) -> list[int]:
        rows = [(side * field.order + a) * field.order + b for side, a, b in images]
        return [int(each) for each in np.concatenate(rows)]

    found = []
    for b in field.basis:
        found.append(move((0, x, sums[y, b]), (1, x, sums[y, b])))
        found.append(move((0, sums[x, b], y), (1, x, sums[y, opposite[products[x, b]]])))
        found.append(move((0, x, sums[y, products[x, b]]), (1, sums[x, b], y)))
    z = field.power(1)
    found.append(move((0, products[x, z], y), (1, products[x, field.power(-1)], y)))
    for f, s, exchanged in _scalings(field):
        scaled = products[s, f]
        slopes = opposite[scaled] if exchanged else scaled
        sides = (1, 0) if exchanged else (0, 1)
        found.append(move((sides[0], f[x], scaled[y]), (sides[1], slopes[x], scaled[y])))
    return found


def _scalings(field: Field) -> Iterator[tuple[np.ndarray, int, bool]]:
    """Yield f, s and whether the sets are exchanged: for each f the first s of either kind."""
    even, odd = _difference_sets(field)
    for times in range(len(field.basis)):
        conjugates, missing = field.conjugates(times), {False, True}
        for exponent in range(field.order - 1):
            s = field.power(exponent)
            images = [{int(field.products[s, conjugates[a]]) for a in each} for each in (even, odd)]
            for exchanged in sorted(missing):
                identity = times == exponent == 0 and not exchanged
                if images == ([odd, even] if exchanged else [even, odd]) and not identity:
                    missing.remove(exchanged)
                    yield conjugates, s, exchanged


def generalised_kautz(
    gpus: int = 12, *, degree: int = 3, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """Join GPU i with -d i - a mod n for a from 1 to d, in that direction alone.

    Links are one way: a port sends to one GPU and receives from another, which takes split fibres;
    copper and most ports train a link in both directions with one peer. Links of a GPU to itself
    are left out, so that up to d GPUs have a port to spare, d + 1 less the greatest divisor that n
    shares with it; where several lead to one GPU, they count so often. n is any number, the
    diameter at most the logarithm of n to the base d, rounded up, and no network has one that is
    smaller by 2. For n = d^k + d^(k - 1) it is the Kautz graph, whose diameter k is the least
    there is, and whose letters may be permuted. Source: Imase, Itoh, A design for directed
    graphs with minimum diameter, IEEE Transactions on Computers 1983.

    Raises
    ------
    ProblemError
        If a number is out of range.
    """
    check("gpus of a generalised Kautz network", gpus, least=3)
    check("degree of a generalised Kautz network", degree, least=2, most=_TRUNK)
    ends = [(i, (-degree * i - a) % gpus) for i in range(gpus) for a in range(1, degree + 1)]
    name = f"Generalised Kautz of {gpus} (degree {degree})"
    made = _one_direction(name, gpus, ends, _wire(bandwidth, alpha), period=degree + 1)
    return _with_letters(made, _kautz_words(gpus, degree))


def generalised_de_bruijn(
    gpus: int = 12, *, degree: int = 3, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """Join GPU i with d i + a mod n for a from 0 to d - 1, in that direction alone.

    Links are one way, as in `generalised_kautz`, and those of a GPU to itself are left out here
    too: from d to 2 d - 2 GPUs have one, d - 1 more than the greatest divisor that n and d - 1
    share. The diameter is at most the logarithm of n to the base d,
    rounded up; for n = d^k it is the de Bruijn graph. Sources: Imase, Itoh, Design to minimize
    diameter on building-block network, IEEE Transactions on Computers 1981; Reddy, Pradhan, Kuhl
    1980.

    Raises
    ------
    ProblemError
        If a number is out of range.
    """
    check("gpus of a generalised de Bruijn network", gpus, least=3)
    check("degree of a generalised de Bruijn network", degree, least=2, most=_TRUNK)
    ends = [(i, (degree * i + a) % gpus) for i in range(gpus) for a in range(degree)]
    name = f"Generalised de Bruijn of {gpus} (degree {degree})"
    made = _one_direction(name, gpus, ends, _wire(bandwidth, alpha), period=degree - 1)
    return _with_letters(made, _de_bruijn_words(gpus, degree))


def _kautz_words(gpus: int, degree: int) -> list[tuple[int, ...]]:
    """Return the words whose shifts are the links of a Kautz graph; none if there is none so large.

    A GPU is a link of the graph that is smaller by the degree, and has the word of its tail
    followed by the last letter of its head. Next to one another no letters of a word are equal.
    """
    if gpus <= degree + 1 or gpus % degree:
        return [(i,) for i in range(gpus)] if gpus == degree + 1 else []
    smaller = gpus // degree
    words = _kautz_words(smaller, degree)
    return [
        (*words[(-i - 1) % gpus // degree], words[i % smaller][-1]) for i in range(gpus) if words
    ]


def _de_bruijn_words(gpus: int, degree: int) -> list[tuple[int, ...]]:
    """Return the words whose shifts are the links of a de Bruijn graph; none for other sizes."""
    length = next(k for k in itertools.count() if degree**k >= gpus)
    words = itertools.product(range(degree), repeat=length)
    return list(words) if degree**length == gpus else []


def _with_letters(made: Topology, words: Sequence[tuple[int, ...]]) -> Topology:
    """Declare instead that the letters of the words of a network may be permuted, if it has any."""
    if not words:
        return made
    letters = max(map(max, words)) + 1
    number = {word: i for i, word in enumerate(words)}
    exchange = [1, 0, *range(2, letters)]
    turn = [*range(1, letters), 0]
    images = [[number[tuple(move[a] for a in word)] for word in words] for move in (exchange, turn)]
    return replace(made, declared=tuple(moved(made.ranks, each) for each in images))


def random_regular(
    vertices: int = 16,
    *,
    degree: int = 4,
    concentration: int = 0,
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
    seed: int = 0,
) -> Topology:
    """Draw one of all networks in which every vertex has d two-way links to different others.

    The mean distance is near the least that d allows, the diameter about the logarithm of n to the
    base d - 1; the bisection is almost surely above n (d / 4 - sqrt(d ln 2) / 2) two-way links. A
    vertex is a GPU, or a router with GPUs (Jellyfish). One that does not hang together is drawn
    again. Sources: Bollobás, The isoperimetric number of random graphs, European Journal of
    Combinatorics 1988; Singla et al., Jellyfish, NSDI 2012.

    Raises
    ------
    ProblemError
        If a number is out of range, or both it and the degree are odd.
    """
    import networkx  # noqa: PLC0415  heavy, and only random networks need it

    check("vertices of a random regular network", vertices, least=4, most=4096)
    check("degree of a random regular network", degree, least=3, most=min(vertices - 1, _TRUNK))
    if vertices * degree % 2:
        raise ProblemError(
            f"{vertices} vertices cannot have {degree} links each, as both are odd; make one even"
        )
    draw, wire = random.Random(seed), _wire(bandwidth, alpha)
    graph = networkx.random_regular_graph(degree, vertices, seed=draw)
    while not networkx.is_connected(graph):
        graph = networkx.random_regular_graph(degree, vertices, seed=draw)
    pairs = sorted((min(pair), max(pair)) for pair in graph.edges())
    name = f"Random regular of {vertices}"
    made = _both_directions(name, vertices, pairs, wire)
    return _at_routers(made, concentration, wire=wire, remarks=[f"degree {degree}, seed {seed}"])


def _both_directions(
    name: str,
    gpus: int,
    pairs: Iterable[tuple[int, int]],
    wire: Wire,
    *,
    turns: Iterable[list[int]] = (),
) -> Topology:
    """Make a network of two-way links between GPUs by number, and of moves that keep it."""
    made = make_gpus(gpus)
    names = [each.name for each in made]
    links = [link for a, b in pairs for link in wire.join(names[a], names[b])]
    return topology(name, made, links, declared=[moved(names, turn) for turn in turns])


def _one_direction(
    name: str, gpus: int, ends: Iterable[tuple[int, int]], wire: Wire, *, period: int
) -> Topology:
    """Make a network of one-way links i to k i + a mod n, those of a GPU to itself left out.

    Counting from the other end keeps it, and so does a turn by n over what divides n and `period`,
    k less 1.
    """
    made = make_gpus(gpus)
    names = [each.name for each in made]
    links = [
        Link(names[a], names[b], wire.bandwidth, wire.alpha, wire.medium) for a, b in ends if a != b
    ]
    turns = [[gpus - 1 - i for i in range(gpus)]]
    if (parts := math.gcd(gpus, period)) > 1:
        turns.append([(i + gpus // parts) % gpus for i in range(gpus)])
    return topology(name, made, links, declared=[moved(names, turn) for turn in turns])


def _at_routers(made: Topology, gpus: int, *, wire: Wire, remarks: Iterable[str] = ()) -> Topology:
    """Put GPUs at each vertex of a network, if any are wanted, and remarks after its name."""
    found = [*remarks, *([f"{gpus} GPUs at each router"] if gpus else [])]
    name = f"{made.name} ({', '.join(found)})" if found else made.name
    return replace(concentrate(made, gpus, wire=wire), name=name)


def _wire(bandwidth: float, alpha: float) -> Wire:
    return Wire(bandwidth=bandwidth, alpha=alpha, medium="")


_direct = partial(
    Entry,
    family="Direct networks",
    figures=(
        Figure("each link", "50 GB/s one way", "assumed"),
        Figure("latency of each link", "0.7 µs", "assumed"),
    ),
)

ENTRIES = (
    _direct(
        "circulant",
        "Circulant",
        summary="GPUs in a circle, each joined with those a few given jumps on and back.",
        source="Bermond, Comellas, Hsu, Distributed loop computer networks, JPDC 1995",
        make=circulant,
    ),
    _direct(
        "twisted-torus",
        "Twisted torus",
        summary="A torus whose rings close after a shift along later dimensions; with the shape "
        "4x4x8 and the twists 0x4x4 a slice of TPU v4.",
        source="Cámara et al., IEEE TPDS 2010; Jouppi et al., TPU v4, arXiv 2304.01433",
        make=twisted_torus,
    ),
    _direct(
        "hyperx",
        "HyperX, full mesh in several dimensions",
        summary="A grid in which every two GPUs, or routers, of a row or column are joined.",
        source="Ahn et al., HyperX, SC 2009; UB-Mesh, arXiv 2503.20377",
        make=hyperx,
    ),
    _direct(
        "slim-fly",
        "Slim Fly",
        summary="GPUs, or routers, that are at most two links apart with nearly as few links as "
        "that can take; 18 are the fewest.",
        source="Besta, Hoefler, SC 2014; rule in arXiv 1912.08968",
        make=slim_fly,
    ),
    _direct(
        "kautz",
        "Generalised Kautz",
        summary="The least diameter for any number of GPUs, by links that go one way, which takes "
        "split fibres.",
        source="Imase, Itoh, IEEE Transactions on Computers 1983",
        make=generalised_kautz,
    ),
    _direct(
        "de-bruijn",
        "Generalised de Bruijn",
        summary="Each GPU sends to those of its number times the degree and on; links go one way, "
        "which takes split fibres.",
        source="Imase, Itoh, IEEE Transactions on Computers 1981",
        make=generalised_de_bruijn,
    ),
    _direct(
        "random-regular",
        "Random regular",
        summary="One of all networks with so many links at each GPU, or at each router; its "
        "distances are near the shortest there are. The seed says which.",
        source="Singla et al., Jellyfish, NSDI 2012; drawn by networkx, the same for the same seed",
        make=random_regular,
    ),
)
