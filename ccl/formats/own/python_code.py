"""A cluster, its collective and its plan as Python code that makes them again.

Run it, or paste it into a notebook: it ends with `topology`, and with `problem`, `plan` or
`result` where there are any. A result is solved again, with the formulation and the options that
found it; a plan is written out and verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import ccl
from ccl.collective import Chunk, Collective
from ccl.errors import FormatError
from ccl.flow import Flow
from ccl.forest import Forest, Tree
from ccl.formats.documents import Document
from ccl.formats.format import NoOptions, Writer, Written, one_file
from ccl.formats.own._python_text import (
    INDENT,
    WIDTH,
    Code,
    Group,
    call,
    lines,
    literal,
    one_line,
    tall,
)
from ccl.formats.topoloom import collective_to_json
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop
from ccl.schedule import Schedule, Send
from ccl.topology import ABILITIES, Device, Link, Topology

MOST_ROUTES = 200_000
"""Routes of a forest whose images are written out."""

_NUMBERED = re.compile(r"([A-Za-z_.\-]*)(0|[1-9][0-9]{0,8})")


class _Code:
    """Lines with the imports that they need."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def uses(self, module: str, *names: str) -> None:
        self.imports.setdefault(module, set()).update(names)

    def add(self, *text: str) -> None:
        self.lines += text

    def text(self) -> str:
        """Return everything."""
        own = sorted(module for module in self.imports if module != "fractions")
        standard = [self._import("fractions"), ""] if "fractions" in self.imports else []
        told = f'"""A cluster written by Topoloom {ccl.__version__}; run it to make it again."""'
        head = [told, "", *standard, *map(self._import, own), ""]
        return "\n".join([*head, *self.lines]) + "\n"

    def _import(self, module: str) -> str:
        names = sorted(self.imports[module], key=lambda name: (name[0].islower(), name))
        line = f"from {module} import {', '.join(names)}"
        if len(line) <= WIDTH:
            return line
        return "\n".join([f"from {module} import (", *(f"{INDENT}{name}," for name in names), ")"])


def write(content: Document, _options: NoOptions) -> Written:
    """Write the code; a plan from a file is written out, since no formulation found it."""
    if content.result is not None and content.result.stop is Stop.READ:
        content = replace(content, result=None)
    lost = []
    if content.topology.declared:
        lost.append("what is declared of the cluster's symmetry; it is found again")
    if isinstance(content.plan, Forest) and content.plan.symmetry and content.result is None:
        lost.append("the symmetry of the forest; its trees are written out")
    if content.result is not None:
        lost.append("time limit and gap of the solve; where it stopped, another plan may come out")
    return one_file(python_code(content), ending="py", lost=tuple(lost))


def python_code(content: Document) -> str:
    """Return the text of a module that makes what a document holds.

    Raises
    ------
    FormatError
        If a forest has too many trees to be written out.
    """
    code = _Code()
    _add_topology(code, content.topology)
    if content.positions:
        places = {name: tuple(place) for name, place in content.positions.items()}
        code.add("", lines(literal(places), before="positions = "))
    if content.problem is not None:
        _add_problem(code, content.problem)
    if content.result is not None:
        _add_result(code, content.result)
    elif content.plan is not None:
        _add_plan(code, content.plan, content.topology)
    return code.text()


# Topology


def _add_topology(code: _Code, topology: Topology) -> None:
    code.uses("ccl.topology", "Topology")
    if topology.devices:
        code.uses("ccl.topology", "device")
    code.add(lines(tall(_devices(topology.devices)), before="devices = "))
    code.add("links = []")
    for run in _runs(topology.links):
        code.uses("ccl.topology", "duplex" if run[0].both else "Link")
        code.add(_linked(run))
    parts = [topology.name, Code("tuple(devices)"), Code("tuple(links)")]
    if topology.limits:
        code.uses("ccl.topology", "SharedLimit")
        limits = (
            call("SharedLimit", each.name, each.links, each.bandwidth) for each in topology.limits
        )
        code.add(lines(tall(limits), before="limits = "))
        parts.append(Code("tuple(limits)"))
    code.add(lines(call("Topology", *parts), before="topology = "))


def _devices(devices: Sequence[Device]) -> Iterator[Any]:
    """Yield each device, or those that are alike and numbered in one line."""
    place = 0
    while place < len(devices):
        run = _numbered(devices, place)
        found = _NUMBERED.fullmatch(devices[place].name)
        if run >= 3 and found is not None:
            first = int(found[2])
            span = f"{first}, {first + run}" if first else f"{run}"
            made = one_line(_device(devices[place], Code(f'f"{found[1]}{{i}}"')))
            line = f"*({made} for i in range({span}))"
            if len(line) + len(INDENT) < WIDTH:
                yield Code(line)
                place += run
                continue
        yield _device(devices[place], devices[place].name)
        place += 1


def _numbered(devices: Sequence[Device], place: int) -> int:
    """Return how many devices from a place on are alike but for the numbers of their names."""
    first = _NUMBERED.fullmatch(devices[place].name)
    if first is None:
        return 1
    count, number = 1, int(first[2])
    while place + count < len(devices):
        wanted = replace(devices[place], name=f"{first[1]}{number + count}")
        if devices[place + count] != wanted:
            break
        count += 1
    return count


def _device(each: Device, name: str | Code) -> Group:
    able = {"stores": each.stores, "copies": each.copies, "reduces": each.reduces}
    usual = zip(able.items(), ABILITIES[each.kind], strict=True)
    named: dict[str, Any] = {} if each.host is None else {"host": each.host}
    named |= {key: value for (key, value), default in usual if value != default}
    if each.buffer_bytes is not None:
        named["buffer_bytes"] = each.buffer_bytes
    return call("device", each.kind, name, **named)


@dataclass(frozen=True)
class _Pair:
    """A link, or two opposite ones, that follow each other; equal `named` are alike."""

    link: Link
    both: bool

    @property
    def named(self) -> dict[str, Any]:
        """Everything but the ends."""
        link = self.link
        named: dict[str, Any] = {"bandwidth": link.bandwidth}
        if repr(link.alpha) != "0.0":
            named["alpha"] = link.alpha
        if link.medium:
            named["medium"] = link.medium
        if link.count != 1:
            named["count"] = link.count
        return named


def _runs(links: Sequence[Link]) -> Iterator[list[_Pair]]:
    """Yield links that follow each other and are alike, two opposite ones as one."""
    pairs = []
    place = 0
    while place < len(links):
        one = links[place]
        both = links[place + 1 : place + 2] == (replace(one, src=one.dst, dst=one.src),)
        pairs.append(_Pair(one, both))
        place += 1 + both
    for _, run in groupby(pairs, key=lambda each: (each.both, repr(each.named))):
        yield list(run)


def _linked(run: Sequence[_Pair]) -> str:
    """Return the lines that add a run of links: a loop over the ends where there are several."""
    first = run[0]
    what = "duplex" if first.both else "Link"
    if len(run) == 1:
        made = call(what, *first.link.ends, **first.named)
        if first.both:
            return lines(made, before="links += ")
        return lines(Group("links.append(", (("", made),), ")"))
    made = call(what, Code("src"), Code("dst"), **first.named)
    head = lines(tall(each.link.ends for each in run), before="for src, dst in ", after=":")
    if first.both:
        return f"{head}\n{lines(made, before='links += ', indent=INDENT)}"
    return f"{head}\n{lines(Group('links.append(', (('', made),), ')'), indent=INDENT)}"


# Problem and plan


def _add_problem(code: _Code, problem: Problem) -> None:
    code.uses("ccl.problem", "Problem")
    code.add("", lines(_collective(code, problem.collective), before="collective = "))
    named: dict[str, Any] = {}
    if problem.windows:
        code.uses("ccl.window", "Window")
        named["windows"] = tuple(
            call("Window", each.links, begin=each.begin, end=each.end, share=each.share)
            for each in problem.windows
        )
    made = call("Problem", Code("topology"), Code("collective"), **named)
    code.add(lines(made, before="problem = "))


def _collective(code: _Code, collective: Collective) -> Group:
    told = collective_to_json(collective)
    ranks = Code("len(topology.ranks)")
    if isinstance(told["chunks"], int):
        name = collective.kind.replace("-", "_")
        code.uses("ccl.collective", name)
        named = {"root": told["root"]} if told["root"] else {}
        named |= {"chunks": told["chunks"]} if told["chunks"] != 1 else {}
        return call(name, ranks, collective.size, **named)
    code.uses("ccl.collective", "Chunk", "Collective")
    chunks = Group("(", tuple(("", _chunk(each)) for each in collective.chunks), ")", tall=True)
    return call("Collective", collective.kind, ranks, size=collective.size, chunks=chunks)


def _chunk(chunk: Chunk) -> Group:
    named: dict[str, Any] = {"reduced": True} if chunk.reduced else {}
    if repr(chunk.priority) != "1.0":
        named["priority"] = chunk.priority
    if chunk.tenant:
        named["tenant"] = chunk.tenant
    return call("Chunk", chunk.size, chunk.holders, chunk.destinations, **named)


def _add_result(code: _Code, result: Result) -> None:
    code.uses("formulations", "solve")
    options = {name: value for name, value in result.options.items() if value is not None}
    named = {"options": options} if options else {}
    code.add(
        "",
        f"# It took {result.makespan:.6g} µs and was found in {result.solve_time:.3g} s.",
        lines(call("solve", Code("problem"), result.formulation, **named), before="result = "),
    )


def _add_plan(code: _Code, plan: Plan, topology: Topology) -> None:
    if isinstance(plan, Schedule):
        code.uses("ccl.schedule", "Schedule", "Send")
        sends = Group("(", tuple(("", _send(each)) for each in plan.sends), ")", tall=True)
        named = {"epoch_duration": plan.epoch_duration, "horizon": plan.horizon}
        made = call("Schedule", sends, **named)
    elif isinstance(plan, Flow):
        code.uses("ccl.flow", "Flow", "Rate")
        rates = (call("Rate", each.chunk, each.src, each.dst, each.amount) for each in plan.rates)
        made = call("Flow", Group("(", tuple(("", each) for each in rates), ")", tall=True))
    else:
        made = _forest(code, plan, topology)
    code.uses("ccl.verify", "verify")
    code.add("", lines(made, before="plan = "), "verify(problem, plan)")


def _send(send: Send) -> Group:
    named: dict[str, Any] = {"via": send.via} if send.via else {}
    if send.fraction != 1:
        named["fraction"] = send.fraction
    return call("Send", send.epoch, send.chunk, send.src, send.dst, **named)


def _forest(code: _Code, forest: Forest, topology: Topology) -> Group:
    routes = forest.images * sum(len(each.routes) for each in (*forest.trees, *forest.spread))
    if routes > MOST_ROUTES:
        msg = (
            f"the forest has {routes:,} routes, and at most {MOST_ROUTES:,} are written out; "
            "write a Topoloom document"
        )
        raise FormatError(msg)
    every = forest.unfolded(topology)
    code.uses("fractions", "Fraction")
    code.uses("ccl.forest", "Forest", "Tree")
    named: dict[str, Any] = {"reduces": True} if every.reduces else {}
    if every.spread:
        named["spread"] = _trees(every.spread)
    return call("Forest", _trees(every.trees), **named)


def _trees(trees: Sequence[Tree]) -> Group:
    made = (call("Tree", each.root, each.routes, _fraction(each.weight)) for each in trees)
    return Group("(", tuple(("", each) for each in made), ")", tall=True)


def _fraction(weight: Fraction) -> Group:
    return call("Fraction", weight.numerator, weight.denominator)


WRITER = Writer(
    name="python",
    title="Python code",
    ending="py",
    needs="topology",
    write=write,
)
