"""A cluster, its collective and its plan as Python code that makes them again.

Run it, or paste it into a notebook: it ends with `topology`, and with `problem`, `plan` or
`result` where there are any. A result is solved again, with the formulation and the options that
found it, or its plan is written out and verified. Whoever knows clusters by name says so with an
entry point of the group `GROUP`: a function of a topology that returns what
`gallery.open_cluster` makes it of, or None. Else a cluster is written out, with runs of devices and
of links that are alike as loops (`add_topology`).

Expressions are laid out as formatters do: one line, or one line for each part (`lines`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from itertools import groupby
from numbers import Integral, Real
from typing import Any, Literal

from msgspec import structs

import ccl
from ccl.collective import Chunk, Collective
from ccl.errors import FormatError
from ccl.layout import layout
from ccl.options import option
from ccl.plans import Flow, Forest, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop
from ccl.serialization.documents import Document
from ccl.serialization.topoloom import collective_to_json
from ccl.topology import Device, Link, Topology
from interchange.formats.fields import device_fields, link_fields
from interchange.formats.format import Writer, Written, one_file
from interchange.formats.own.fragment import Solving

WIDTH = 88
"""Signs in a line; what the usual formatters take where nothing else is said."""
INDENT = "    "


@dataclass(frozen=True)
class Group:
    """Parts between brackets.

    Parameters
    ----------
    begin, end
        With the brackets: ``Link(`` and ``)``.
    parts
        What stands before a part, such as ``alpha=``, and the part.
    tall
        Whether each part has a line of its own even if all fit into one.
    """

    begin: str
    parts: tuple[tuple[str, Expression], ...]
    end: str
    tall: bool = False


Expression = str | Group


def call(name: str, *values: Any, **named: Any) -> Group:
    """Return a call with values, which are written as `literal` does."""
    parts = [("", literal(each)) for each in values]
    parts += [(f"{key}=", literal(each)) for key, each in named.items()]
    return Group(f"{name}(", tuple(parts), ")")


def tall(values: Iterable[Any]) -> Group:
    """Return a list with a line for each value."""
    return Group("[", tuple(("", literal(each)) for each in values), "]", tall=True)


@dataclass(frozen=True)
class Code:
    """An expression that is written as it is."""

    text: str


def literal(value: Any) -> Expression:
    """Return the expression that makes a value again: texts, numbers, tuples, lists and dicts."""
    if isinstance(value, Group):
        return value
    if isinstance(value, Code):
        return value.text
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        parts = tuple((f"{one_line(literal(key))}: ", literal(each)) for key, each in value.items())
        return Group("{", parts, "}")
    if isinstance(value, (tuple, list)):
        begin, end = "()" if isinstance(value, tuple) else "[]"
        return Group(begin, tuple(("", literal(each)) for each in value), end)
    if value is None or isinstance(value, bool):
        return repr(value)
    # Numbers of numpy are written as those of Python that they are equal to.
    if isinstance(value, Integral):
        return repr(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    raise TypeError(f"{type(value).__name__} has no literal")


def quoted(text: str) -> str:
    """Return a text in quotes, double ones unless it has such itself."""
    found = repr(text)
    if found[0] == "'" and '"' not in found:
        return f'"{found[1:-1]}"'
    return found


def one_line(expression: Expression) -> str:
    """Return an expression in one line."""
    if isinstance(expression, str):
        return expression
    parts = [before + one_line(part) for before, part in expression.parts]
    comma = "," if expression.begin == "(" and len(parts) == 1 else ""
    return f"{expression.begin}{', '.join(parts)}{comma}{expression.end}"


def lines(expression: Expression, *, before: str = "", after: str = "", indent: str = "") -> str:
    """Return an expression with what stands around it, in as many lines as it needs."""
    line = f"{indent}{before}{one_line(expression)}{after}"
    if isinstance(expression, str) or not expression.parts:
        return line
    if len(line) <= WIDTH and not _tall(expression):
        return line
    rows = [
        lines(part, before=head, after=",", indent=indent + INDENT)
        for head, part in expression.parts
    ]
    return "\n".join(
        [f"{indent}{before}{expression.begin}", *rows, f"{indent}{expression.end}{after}"]
    )


def _tall(expression: Expression) -> bool:
    return isinstance(expression, Group) and (
        expression.tall or any(_tall(part) for _, part in expression.parts)
    )


class Script:
    """Lines with the imports that they need."""

    def __init__(self) -> None:
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def uses(self, module: str, *names: str) -> None:
        """Import names of a module."""
        self.imports.setdefault(module, set()).update(names)

    def add(self, *text: str) -> None:
        """Add lines at the end."""
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


_NUMBERED = re.compile(r"([A-Za-z_.\-]*)(0|[1-9][0-9]{0,8})")


def add_topology(code: Script, topology: Topology) -> None:
    """Write out a cluster: runs of devices and of links that are alike as one."""
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
    return call("device", each.kind, name, **device_fields(each))


@dataclass(frozen=True)
class _Pair:
    """A link, or two opposite ones, that follow each other; equal `named` are alike."""

    link: Link
    both: bool

    @property
    def named(self) -> dict[str, Any]:
        """Everything but the ends."""
        named = link_fields(self.link)
        if repr(named["alpha"]) == "0.0":
            del named["alpha"]
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


GROUP = "topoloom.clusters"
"""Of the entry points that know clusters by name."""

MOST_ROUTES = 200_000
"""Routes of a forest whose images are written out."""

_CUT_SHORT = (Stop.TIME_LIMIT, Stop.MEMORY, Stop.CANCELLED)
"""Where the same solve may come to another end."""


@dataclass(frozen=True, kw_only=True)
class PythonOptions:
    """Of the code."""

    plan: Literal["solved again", "written out"] = option(
        "solved again", "Plan", "A plan that is written out is the very same one."
    )
    by_name: bool = option(True, "By name", "Clusters of the gallery as open_cluster(...).")


def write(content: Document, options: PythonOptions, *, solving: Solving | None = None) -> Written:
    """Write the code; a plan from a file is written out, since no formulation found it.

    Parameters
    ----------
    content, options
        As for any writer.
    solving
        How the problem is to be solved, limits included, where somebody knows.
    """
    found = content.result
    if found is not None and (found.stop is Stop.READ or options.plan == "written out"):
        content = replace(content, result=None)
    name = known(content.topology) if options.by_name else None
    lost = []
    if content.topology.declared and name is None:
        lost.append("what is declared of the cluster's symmetry; it is found again")
    if isinstance(content.plan, Forest) and content.plan.symmetry and content.result is None:
        lost.append("the symmetry of the forest; its trees are written out")
    if found is not None and content.result is None:
        lost.append("bounds and log of the result")
    elif content.result is not None and solving is None:
        lost.append("time limit and gap of the solve; where it stopped, another plan may come out")
    elif content.result is not None and content.result.stop in _CUT_SHORT:
        lost.append("when the solve was stopped; another plan may come out")
    code = python_code(content, name, solving=solving)
    return one_file(code, ending="py", lost=tuple(lost))


def known(topology: Topology) -> str | None:
    """Return the name under which the gallery opens a topology, None where nobody knows one."""
    for each in entry_points(group=GROUP):
        found: str | None = each.load()(topology)
        if found is not None:
            return found
    return None


def python_code(
    content: Document, name: str | None = None, *, solving: Solving | None = None
) -> str:
    """Return the text of a module that makes what a document holds.

    Parameters
    ----------
    content
        The document.
    name
        Under which the gallery opens its cluster, or None to write it out.
    solving
        How the problem is to be solved; of a result its formulation and options are known.

    Raises
    ------
    FormatError
        If a forest has too many trees to be written out.
    """
    code = Script()
    if name is None:
        add_topology(code, content.topology)
    else:
        code.uses("gallery", "open_cluster")
        code.add(lines(call("open_cluster", name), before="topology = "))
    if content.positions:
        _add_positions(code, content)
    if content.problem is not None:
        _add_problem(code, content.problem)
    if content.result is not None:
        _add_result(code, content.result, solving)
    elif content.plan is not None:
        _add_plan(code, content.plan, content.topology)
    elif solving is not None:
        _add_solving(code, solving)
    return code.text()


def _add_positions(code: Script, content: Document) -> None:
    places = {name: tuple(place) for name, place in content.positions.items()}
    if places == layout(content.topology):
        code.uses("ccl.layout", "layout")
        code.add("", "positions = layout(topology)")
    else:
        code.add("", lines(literal(places), before="positions = "))


# Problem and plan


def _add_problem(code: Script, problem: Problem) -> None:
    code.uses("ccl.problem", "Problem")
    code.add("", lines(_collective(code, problem.collective), before="collective = "))
    named: dict[str, Any] = {}
    if problem.windows:
        code.uses("ccl.problem", "Window")
        named["windows"] = tuple(
            call("Window", each.links, begin=each.begin, end=each.end, share=each.share)
            for each in problem.windows
        )
    made = call("Problem", Code("topology"), Code("collective"), **named)
    code.add(lines(made, before="problem = "))


def _collective(code: Script, collective: Collective) -> Group:
    told = collective_to_json(collective)
    ranks = Code("len(topology.ranks)")
    if isinstance(told["chunks"], int):
        name = collective.kind.replace("-", "_")
        code.uses("ccl.collective", name)
        named = {"root": told["root"]} if told["root"] else {}
        if collective.whole:
            named["chunks"] = told["chunks"]
        made = call(name, ranks, collective.size, **named)
        cut = told["chunks"] > 1 and not collective.whole
        return replace(made, end=f").cut({told['chunks']})") if cut else made
    code.uses("ccl.collective", "Chunk", "Collective")
    chunks = Group("(", tuple(("", _chunk(each)) for each in collective.chunks), ")", tall=True)
    fixed = {"whole": True} if collective.whole else {}
    return call("Collective", collective.kind, ranks, size=collective.size, chunks=chunks, **fixed)


def _chunk(chunk: Chunk) -> Group:
    named: dict[str, Any] = {"reduced": True} if chunk.reduced else {}
    if repr(chunk.priority) != "1.0":
        named["priority"] = chunk.priority
    if chunk.tenant:
        named["tenant"] = chunk.tenant
    return call("Chunk", chunk.size, chunk.holders, chunk.destinations, **named)


def _add_result(code: Script, result: Result, solving: Solving | None) -> None:
    """Solve it again: what found it is in the result, within which limits only the asker knows."""
    code.uses("formulations", "solve")
    limits = Solving(formulation="") if solving is None else solving
    named = structs.replace(
        limits, formulation=result.formulation, options=result.options
    ).arguments
    name = named.pop("formulation")
    code.add(
        "",
        f"# It took {result.makespan:.6g} µs and was found in {result.solve_time:.3g} s.",
        lines(call("solve", Code("problem"), name, **named), before="result = "),
    )


def _add_solving(code: Script, solving: Solving) -> None:
    """Say how it would be solved; running the code solves nothing."""
    code.add(
        "",
        "# from formulations import solve",
        "# result = solve(problem, **asked)",
        lines(literal(solving.arguments), before="asked = "),
    )


def _add_plan(code: Script, plan: Plan, topology: Topology) -> None:
    if isinstance(plan, Schedule):
        code.uses("ccl.plans", "Schedule", "Send")
        sends = Group("(", tuple(("", _send(each)) for each in plan.sends), ")", tall=True)
        named = {"epoch_duration": plan.epoch_duration, "horizon": plan.horizon}
        made = call("Schedule", sends, **named)
    elif isinstance(plan, Flow):
        code.uses("ccl.plans", "Flow", "Rate")
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
    if send.terms is not None:
        named["terms"] = call("frozenset", sorted(send.terms))
    return call("Send", send.epoch, send.chunk, send.src, send.dst, **named)


def _forest(code: Script, forest: Forest, topology: Topology) -> Group:
    routes = forest.images * sum(len(each.routes) for each in (*forest.trees, *forest.spread))
    if routes > MOST_ROUTES:
        raise FormatError(
            f"the forest has {routes:,} routes, and at most {MOST_ROUTES:,} are written out; "
            "write a Topoloom document"
        )
    every = forest.unfolded(topology)
    code.uses("fractions", "Fraction")
    code.uses("ccl.plans", "Forest", "Tree")
    named: dict[str, Any] = {"reduces": True} if every.reduces else {}
    if every.spread:
        named["spread"] = _trees(every.spread)
    return call("Forest", _trees(every.trees), **named)


def _trees(trees: Sequence[Tree]) -> Group:
    weights = (call("Fraction", *each.weight.as_integer_ratio()) for each in trees)
    made = (call("Tree", t.root, t.routes, w) for t, w in zip(trees, weights, strict=True))
    return Group("(", tuple(("", each) for each in made), ")", tall=True)


WRITER = Writer("python", "Python code", "py", "topology", write, PythonOptions)
