"""A second opinion on small programs, which shares nothing with `interchange.execution`.

It writes out every ordering between two steps as sets of bits, demands that any two accesses to
one chunk be ordered, and follows what each chunk is the sum of as a multiset of contributions in
one order: where all accesses are ordered, every order gives that result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

SENDING = {"s", "rcs", "rrs", "rrcs"}
RECEIVING = {"r", "rcs", "rrs", "rrc", "rrcs"}
READING = {"s", "rrs", "rrc", "rrcs", "cpy", "re"}
WRITING = {"r", "rcs", "rrc", "rrcs", "cpy", "re"}
SLOTS = 2


class Wrong(Exception):
    """The program is not right."""


def demand(right, why):
    """Raise unless something holds."""
    if not right:
        raise Wrong(why)


def verdict(program):
    """Return why the program is wrong, or None if it is proved right."""
    try:
        demand(program.in_place or program.out_of_place, "nobody calls it")
        for in_place in (False, True):
            if program.in_place if in_place else program.out_of_place:
                Trial(program, in_place).prove()
    except Wrong as wrong:
        return str(wrong)
    return None


class Trial:
    """A program in one manner of calling it."""

    def __init__(self, program, in_place):
        self.program, self.in_place, self.ranks = program, in_place, len(program.ranks)
        self.steps = [
            (rank, block, number)
            for rank, each in enumerate(program.ranks)
            for block, own in enumerate(each.blocks)
            for number in range(len(own.steps))
        ]
        self.number = {where: number for number, where in enumerate(self.steps)}

    def block(self, where):
        return self.program.ranks[where[0]].blocks[where[1]]

    def step(self, where):
        return self.block(where).steps[where[2]]

    def prove(self):
        self.sizes()
        for where in self.steps:
            self.placed(where)
        self.match()
        order, before = self.closure()
        self.ordered(before)
        self.contents(order)

    def sizes(self):
        """Buffers are as long as the collective has them, by the ratio of the two."""
        n, whole, kind = self.ranks, self.program.chunks_per_loop, self.program.collective
        part = whole / n
        given, taken = {
            "all-gather": (part, whole),
            "gather": (part, whole),
            "reduce-scatter": (whole, part),
            "scatter": (whole, part),
        }.get(kind, (whole, whole))
        sharded = kind in ("all-gather", "gather", "reduce-scatter", "scatter", "all-to-all")
        demand(whole > 0 and (part == int(part) or not sharded), "chunks a loop")
        demand(0 <= self.program.root < n, "root")
        self.part, self.given, self.taken = int(part), int(given), int(taken)
        for rank, each in enumerate(self.program.ranks):
            root = rank == self.program.root
            inputs = {self.given} if root or kind not in ("broadcast", "scatter") else {0, given}
            outputs = {self.taken} if root or kind not in ("reduce", "gather") else {0, taken}
            if not self.program.out_of_place:
                inputs |= {0} if given <= taken else set()
                outputs |= {0} if taken <= given else set()
            demand(each.input in inputs and each.output in outputs, f"sizes of rank {rank}")

    def placed(self, where):
        """The step's places, its wait and its peers exist."""
        step, block, own = self.step(where), self.block(where), self.program.ranks[where[0]]
        for peer, uses in ((block.send, SENDING), (block.receive, RECEIVING)):
            demand(-1 <= peer < self.ranks and peer != where[0], f"peer of {where}")
            demand(peer != -1 or step.operation not in uses, f"{where} has no peer")
        demand(step.count > 0 or step.operation == "nop", f"count of {where}")
        demand(block.channel >= 0, f"channel of {where}")
        for place, uses in ((step.src, READING), (step.dst, WRITING)):
            if step.operation in uses:
                demand(place is not None, f"{where} has no place")
                last = place.index + step.count
                demand(place.index >= 0 and last <= getattr(own, place.buffer), f"range of {where}")
        if step.after is not None:
            demand((where[0], *step.after) in self.number, f"{where} waits for nothing")

    def match(self):
        """Pair the k-th send of each connection with its k-th receive."""
        sends, receives = defaultdict(list), defaultdict(list)
        for where in self.steps:
            step, block = self.step(where), self.block(where)
            if step.operation in SENDING:
                sends[where[0], block.send, block.channel].append(where)
            if step.operation in RECEIVING:
                receives[block.receive, where[0], block.channel].append(where)
        self.pairs = []
        for key in {*sends, *receives}:
            for ends in (sends[key], receives[key]):
                demand(len({where[1] for where in ends}) == 1, f"ends of {key}")
            demand(len(sends[key]) == len(receives[key]), f"messages of {key}")
            both = list(zip(sends[key], receives[key], strict=True))
            for sent, taken in both:
                demand(self.step(sent).count == self.step(taken).count, f"count of {sent}")
            self.pairs.append(both)

    def edges(self, slots):
        for where in self.steps:
            rank, block, number = where
            if number:
                yield (rank, block, number - 1), where
            if self.step(where).after is not None:
                yield (rank, *self.step(where).after), where
        for both in self.pairs:
            yield from both
            if slots:
                for late, early in zip(both[SLOTS:], both[: -SLOTS or None], strict=False):
                    yield early[1], late[0]

    def sorted(self, slots):
        """Return the steps by Kahn's algorithm."""
        following: defaultdict = defaultdict(list)
        missing: Counter = Counter()
        for one, other in self.edges(slots):
            following[one].append(other)
            missing[other] += 1
        ready = [where for where in self.steps if not missing[where]]
        for where in ready:
            for other in following[where]:
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
        demand(len(ready) == len(self.steps), "deadlock")
        return ready

    def closure(self):
        """Return an order and of each step all steps before it, as bits."""
        self.sorted(slots=True)
        order = self.sorted(slots=False)
        previous = defaultdict(list)
        for one, other in self.edges(slots=False):
            previous[other].append(one)
        before = {}
        for where in order:
            before[where] = 0
            for one in previous[where]:
                before[where] |= before[one] | 1 << self.number[one]
        return order, before

    def chunk(self, rank, buffer, index):
        """Return a name of the memory of a chunk, the same for both of its names in place."""
        if buffer == "scratch" or not self.in_place:
            return rank, buffer, index
        kind = self.program.collective
        short = {"all-gather": "input", "gather": "input"}.get(
            kind, "output" if kind in ("reduce-scatter", "scatter") else None
        )
        return rank, "both", index + (rank * self.part if buffer == short else 0)

    def chunks(self, where, place):
        count = self.step(where).count
        return [self.chunk(where[0], place.buffer, place.index + n) for n in range(count)]

    def touched(self, where):
        """Return the chunks that a step reads and those that it writes."""
        step = self.step(where)
        read = self.chunks(where, step.src) if step.operation in READING else []
        written = self.chunks(where, step.dst) if step.operation in WRITING else []
        # Whoever reads or writes meanwhile does not notice a copy onto itself.
        return ([], []) if step.operation == "cpy" and read == written else (read, written)

    def ordered(self, before):
        """Any two accesses to one chunk, one of them a write, are ordered."""
        uses = defaultdict(list)
        for where in self.steps:
            read, written = self.touched(where)
            demand(read == written or not {*read} & {*written}, f"{where} overlaps")
            for chunk in {*read, *written}:
                uses[chunk].append((where, chunk in written))
        for chunk, accesses in uses.items():
            for (one, writes), (other, also) in combinations(accesses, 2):
                known = before[one] >> self.number[other] | before[other] >> self.number[one]
                demand(known & 1 or not (writes or also), f"{one} and {other} race for {chunk}")

    def contents(self, order):
        """Follow the contributions and compare them with the definition of the collective."""
        kind, root = self.program.collective, self.program.root
        memory = {
            self.chunk(rank, "input", index): Counter([(rank, index)])
            for rank in range(self.ranks)
            if kind not in ("broadcast", "scatter") or rank == root
            for index in range(self.given)
        }
        taken = {sent: receive for both in self.pairs for sent, receive in both}
        mail: dict = {}
        for where in order:
            self.act(where, memory, mail, taken)
        for rank in range(self.ranks):
            if kind not in ("reduce", "gather") or rank == root:
                for index in range(self.taken):
                    held = memory.get(self.chunk(rank, "output", index))
                    demand(held == Counter(self.wanted(rank, index)), f"output {rank, index}")

    def act(self, where, memory, mail, taken):
        step = self.step(where)
        if step.operation == "cpy" and self.touched(where) == ([], []):
            return
        count = step.count if step.operation != "nop" else 0
        parts: list[Counter] = [Counter() for _ in range(count)]
        sources = []
        if step.operation in RECEIVING:
            sources.append(mail.pop(where))
        if step.operation in READING:
            sources.append([memory.get(each) for each in self.chunks(where, step.src)])
        if step.operation == "re":
            sources.append([memory.get(each) for each in self.chunks(where, step.dst)])
        for source in sources:
            demand(None not in source, f"{where} reads nothing")
            parts = [one + other for one, other in zip(parts, source, strict=True)]
        if step.operation in WRITING:
            memory.update(zip(self.chunks(where, step.dst), parts, strict=True))
        if step.operation in SENDING:
            mail[taken[where]] = parts

    def wanted(self, rank, index):
        """Return the contributions to a chunk of an output."""
        kind, root, part, n = self.program.collective, self.program.root, self.part, self.ranks
        return {
            "all-gather": lambda: [(index // part, index % part)],
            "gather": lambda: [(index // part, index % part)],
            "all-to-all": lambda: [(index // part, rank * part + index % part)],
            "broadcast": lambda: [(root, index)],
            "scatter": lambda: [(root, rank * part + index)],
            "all-reduce": lambda: [(each, index) for each in range(n)],
            "reduce": lambda: [(each, index) for each in range(n)],
            "reduce-scatter": lambda: [(each, rank * part + index) for each in range(n)],
        }[kind]()
