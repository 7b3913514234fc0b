"""A second opinion on small programs of puts, which shares nothing with `interchange.execution`.

It writes out every ordering between two operations as sets of bits: threads of a block are
ordered by meetings alone, and one channel's or semaphore's operations among themselves. Any two
accesses to one chunk, of two calls in a row and of the caller between them, must be ordered. What
each chunk is the sum of is followed as a multiset in one order: where all are ordered, every
order gives that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.interchange.execution.oracle import Wrong, demand

LOCAL = {"copy": 1, "re": 2, "rre": 1, "res": 2, "rres": 1, "put": 1, "pws": 1, "pwsf": 1, "get": 0}
MOVES = set(LOCAL)


def verdict_of_puts(program):
    """Return why the program is wrong, or None if it is proved right."""
    try:
        _sizes(program)
        for rank, _, _, op in program.ops():
            _shape(program, rank, op)
        _counts(program)
        for calls in (1, 2):
            trial = Trial(program, calls)
            before = trial.closure()
            trial.ordered(before)
        Trial(program, 1).contents()
    except Wrong as wrong:
        return str(wrong)
    return None


def _sizes(program):
    n, kind = len(program.ranks), program.collective
    whole = max(max(each.input, each.output) for each in program.ranks)
    short = {"all-gather": "input", "gather": "input"}.get(kind)
    short = {"reduce-scatter": "output", "scatter": "output"}.get(kind, short)
    if short or kind == "all-to-all":
        demand(whole % n == 0, "shards")
    for each in program.ranks:
        for buffer in ("input", "output"):
            wanted = whole // n if buffer == short else whole
            demand(getattr(each, buffer) == wanted, f"size of {buffer}")


def _shape(program, rank, op):
    channels = program.ranks[rank].channels
    for channel in op.channels:
        demand(0 <= channel < len(channels), "no such channel")
        demand(channels[channel].kind == op.kind, "kind")
        demand(program.other_end(rank, channel) is not None, "no other end")
    demand(all(0 <= s < len(program.ranks[rank].semaphores) for s in op.semaphores), "semaphore")
    for cells in (*op.src, *op.dst):
        there = rank if cells.rank is None else cells.rank
        demand(0 <= there < len(program.ranks), "rank")
        has = getattr(program.ranks[there], cells.buffer)
        demand(cells.index >= 0 and cells.index + cells.count <= has, "range")
    if op.name in ("pws", "pwsf", "flush"):
        demand(op.kind == "port", "ports alone")
    if op.name not in MOVES:
        return
    demand(len({each.count for each in (*op.src, *op.dst)}) == 1, "counts")
    demand(op.dst[0].count > 0, "count")
    far_src = [each.rank is not None for each in op.src]
    far_dst = [each.rank is not None for each in op.dst]
    if op.name in ("put", "pws", "pwsf", "get"):
        demand(len(far_src) == len(far_dst), "pairs")
        demand(not any(far_dst if op.name == "get" else far_src), "here")
        demand(all(far_src if op.name == "get" else far_dst), "there")
    else:
        least = LOCAL[op.name]
        demand(not any(far_src[:least]) and len(far_src) >= max(least, 1 + (op.name != "copy")), "")
        demand(all(far_src[least:]) if op.name in ("rre", "rres") else not any(far_src), "sources")
        demand(op.name != "copy" or len(far_src) == 1, "one source")
        demand(not far_dst[0], "first here")
        demand(
            all(far_dst[1:]) and len(far_dst) > 1
            if op.name in ("res", "rres")
            else len(far_dst) == 1,
            "destinations",
        )
    if op.kind == "port":
        demand(len(op.channels) == len(op.dst), "a channel each")
        peers = [channels[channel].peer for channel in op.channels]
        demand(peers == [each.rank for each in op.dst], "peers")
    for dst in op.dst:
        for src in op.src:
            same = (src.rank, src.buffer) == (dst.rank, dst.buffer)
            demand(not same or not 0 < abs(src.index - dst.index) < src.count, "overlap")


def _counts(program):
    signals, waits, gives, takes = (Counter[tuple[int, int]]() for _ in range(4))
    users = defaultdict(set)
    for rank, block, _, op in program.ops():
        for channel in op.channels:
            if op.name == "wait":
                waits[rank, channel] += 1
                users["wait", rank, channel].add(block)
            else:
                users["use", rank, channel].add(block)
            if op.name in ("signal", "pws", "pwsf"):
                signals[program.other_end(rank, channel)] += 1
        for semaphore in op.semaphores:
            if op.name == "sem_acquire":
                takes[rank, semaphore] += 1
                users["take", rank, semaphore].add(block)
            elif op.name == "sem_release":
                gives[rank, semaphore] += 1
    demand(signals == waits, "signals and waits")
    demand(gives == takes, "releases and acquires")
    demand(all(len(blocks) == 1 for blocks in users.values()), "one block to an end")
    for ops in (ops for rank in program.ranks for ops in rank.blocks):
        demand(len(ops) <= 64, "operations")


class Trial:
    """A program called once or twice: nodes, what must come before each, what each touches."""

    def __init__(self, program, calls):
        self.program = program
        self.after: list[list[int]] = []
        self.does: list[list[Any]] = []
        self.last: defaultdict[Any, int | None] = defaultdict(lambda: None)
        self.signals: defaultdict[Any, list[int]] = defaultdict(list)
        self.releases: defaultdict[Any, list[int]] = defaultdict(list)
        self.waiting: list[tuple[int, list[int], int]] = []
        self.turns: Counter[Any] = Counter()
        self.proxy: dict[Any, int] = {}
        launched = [None] * len(program.ranks)
        for call in range(calls):
            for rank, each in enumerate(program.ranks):
                done = []
                for block, ops in enumerate(each.blocks):
                    done += self.block(rank, block, ops, launched[rank])
                if call + 1 < calls:
                    launched[rank] = self.node(done, self.caller(rank))
        for node, posts, turn in self.waiting:
            demand(turn <= len(posts), "waits in vain")
            if turn > 0:
                self.after[node].append(posts[turn - 1])

    def node(self, after, does=()):
        self.after.append([each for each in after if each is not None])
        self.does.append(list(does))
        return len(self.after) - 1

    def caller(self, rank):
        """Read the output, write the input; None in place of sources is somebody else's data."""
        each = self.program.ranks[rank]
        reads = [(None, [("output", i)]) for i in range(each.output)]
        writes: list[Any] = [(("input", i), []) for i in range(each.input)]
        return [
            (self.cell(rank, *target) if target else None, [self.cell(rank, *s) for s in sources])
            for target, sources in (*reads, *writes)
        ]

    def cell(self, rank, buffer, index):
        kind, each = self.program.collective, self.program.ranks[rank]
        if self.program.in_place and buffer != "scratch":
            if kind == "all-gather" and buffer == "input":
                return rank, "one", index + rank * each.input
            if kind == "reduce-scatter" and buffer == "output":
                return rank, "one", index + rank * each.output
            return rank, "one", index
        return rank, buffer, index

    def block(self, rank, block, ops, launched):
        """Add the nodes of a block and return those that the end of the call waits for."""
        meeting, since, everything = launched, [], []

        def threaded(key, does=()):
            before = self.last[key] if key else None
            node = self.node([meeting, before], does)
            if key:
                self.last[key] = node
            since.append(node)
            everything.append(node)
            return node

        for op in ops:
            if op.name == "nop":
                meeting = self.node([meeting, *since])
                since = []
                everything.append(meeting)
            elif op.name in MOVES and op.kind != "port":
                threaded(None, self.moved(rank, op))
            elif op.name.startswith("sem_"):
                for semaphore in op.semaphores:
                    node = threaded((op.name, rank, block, semaphore))
                    posts = self.releases[rank, semaphore]
                    if op.name == "sem_release":
                        posts.append(node)
                    else:
                        self.turns["sem", rank, semaphore] += 1
                        first = self.program.ranks[rank].semaphores[semaphore]
                        turn = self.turns["sem", rank, semaphore] - first
                        self.waiting.append((node, posts, turn))
            else:
                for turn, channel in enumerate(op.channels):
                    self.talk(rank, op, turn, channel, threaded)
        return everything

    def talk(self, rank, op, turn, channel, threaded):
        far = self.program.other_end(rank, channel)
        port = ("port", rank, channel)
        if op.name == "wait":
            self.turns[rank, channel] += 1
            node = threaded(("wait", rank, channel))
            self.waiting.append((node, self.signals[rank, channel], self.turns[rank, channel]))
        elif op.name == "flush":
            self.after[threaded(port)] += [self.proxy[port]] if port in self.proxy else []
        elif op.kind == "port":
            push = threaded(port)
            does = self.moved(rank, op)[:0]
            if op.name in MOVES:
                count = op.dst[turn].count
                does = self.moved(rank, op)[turn * count : (turn + 1) * count]
            self.proxy[port] = self.node([push, self.proxy.get(port)], does)
            if op.name != "put":
                self.signals[far].append(self.proxy[port])
            if op.name == "pwsf":
                self.after[threaded(port)].append(self.proxy[port])
        else:
            self.signals[far].append(threaded(("signal", rank, channel)))

    def moved(self, rank, op):
        """Return (target, sources) cell by cell; remote copies of a sum after the sum."""

        def cells(each):
            there = rank if each.rank is None else each.rank
            return [self.cell(there, each.buffer, each.index + i) for i in range(each.count)]

        if op.name in ("put", "pws", "pwsf", "get"):
            pairs = [(dst, (src,)) for src, dst in zip(op.src, op.dst, strict=True)]
        else:
            pairs = [(dst, op.src if not n else op.dst[:1]) for n, dst in enumerate(op.dst)]
        found = []
        for dst, sources in pairs:
            listed = zip(*(cells(each) for each in sources), strict=True)
            rows = [(a, list(b)) for a, b in zip(cells(dst), listed, strict=True)]
            found += [row for row in rows if not (op.name == "copy" and row[1] == [row[0]])]
        return found

    def order(self):
        """Return the nodes in an order that keeps all that must come before."""
        left = [len(each) for each in self.after]
        then = defaultdict(list)
        for node, each in enumerate(self.after):
            for other in each:
                then[other].append(node)
        ready = [node for node, many in enumerate(left) if not many]
        found = []
        while ready:
            found.append(ready.pop())
            for node in then[found[-1]]:
                left[node] -= 1
                if not left[node]:
                    ready.append(node)
        demand(len(found) == len(left), "deadlock")
        return found

    def closure(self):
        """Return for each node all that come before it, as bits."""
        before = [0] * len(self.after)
        for node in self.order():
            for other in self.after[node]:
                before[node] |= before[other] | 1 << other
        return before

    def ordered(self, before):
        touches = defaultdict(set)
        for node, does in enumerate(self.does):
            for target, sources in does:
                if target is not None:
                    touches[target].add((node, True))
                for source in sources:
                    touches[source].add((node, False))
        for cell, users in touches.items():
            for one, writes in users:
                for other, _ in users if writes else ():
                    if one != other:
                        known = before[one] >> other & 1 or before[other] >> one & 1
                        demand(known, f"hazard at {cell}")

    def contents(self):
        """Follow what each chunk is the sum of and compare with the collective, by its words."""
        n, kind, root = len(self.program.ranks), self.program.collective, self.program.root
        demand(0 <= root < n, "root")
        held = {}
        for rank, each in enumerate(self.program.ranks):
            if kind not in ("broadcast", "scatter") or rank == root:
                for i in range(each.input):
                    held[self.cell(rank, "input", i)] = Counter({(rank, i): 1})
        for node in self.order():
            for target, sources in self.does[node]:
                demand(all(source in held for source in sources), "reads nothing")
                held[target] = sum((held[source] for source in sources), Counter())
        whole = max(max(each.input, each.output) for each in self.program.ranks)
        shard = whole // n
        for rank, each in enumerate(self.program.ranks):
            if kind in ("reduce", "gather") and rank != root:
                continue
            for i in range(each.output):
                wanted = {
                    "all-gather": [divmod(i, shard)] if shard else [],
                    "gather": [divmod(i, shard)] if shard else [],
                    "all-reduce": [(src, i) for src in range(n)],
                    "reduce": [(src, i) for src in range(n)],
                    "reduce-scatter": [(src, rank * shard + i) for src in range(n)],
                    "broadcast": [(root, i)],
                    "scatter": [(root, rank * shard + i)],
                    "all-to-all": [(i // shard, rank * shard + i % shard)] if shard else [],
                }[kind]
                demand(held.get(self.cell(rank, "output", i)) == Counter(wanted), "result")
