"""A cluster, its collective and its plan as Python code that makes them again.

Run it, or paste it into a notebook: it ends with `topology`, and with `problem`, `plan` or
`result` where there are any. A result is solved again, with the formulation and the options that
found it, or its plan is written out and verified. Whoever knows clusters by name says so with an
entry point of the group `GROUP`: a function of a topology that returns what
`gallery.open_cluster` makes it of, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import entry_points
from typing import Any, Literal

from ccl.collective import Chunk, Collective
from ccl.errors import FormatError
from ccl.flow import Flow
from ccl.forest import Forest, Tree
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop
from ccl.schedule import Schedule, Send
from ccl.serialization.documents import Document
from ccl.serialization.topoloom import collective_to_json
from ccl.topology import Topology
from interchange.formats.format import Writer, Written, one_file
from interchange.formats.own._python_text import Code, Group, Script, call, lines, literal
from interchange.formats.own._python_topology import add_topology
from interchange.formats.own.fragment import Solving

GROUP = "topoloom.clusters"
"""Of the entry points that know clusters by name."""

MOST_ROUTES = 200_000
"""Routes of a forest whose images are written out."""

_CUT_SHORT = (Stop.TIME_LIMIT, Stop.MEMORY, Stop.CANCELLED)
"""Where the same solve may come to another end."""


@dataclass(frozen=True, kw_only=True)
class PythonOptions:
    """Of the code."""

    plan: Literal["solved again", "written out"] = field(
        default="solved again",
        metadata={"label": "Plan", "help": "A plan that is written out is the very same one."},
    )
    by_name: bool = field(
        default=True,
        metadata={"label": "By name", "help": "Clusters of the gallery as open_cluster(...)."},
    )


def write(content: Document, options: PythonOptions, *, solving: Solving | None = None) -> Written:
    """Write the code; a plan from a file is written out, since no formulation found it.

    Parameters
    ----------
    content, options
        As for any writer.
    solving
        How the problem is asked to be solved, limits included, where somebody knows.
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
        code.uses("ccl.window", "Window")
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
    named = replace(limits, formulation=result.formulation, options=result.options).arguments
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


def _forest(code: Script, forest: Forest, topology: Topology) -> Group:
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
    options=PythonOptions,
)
