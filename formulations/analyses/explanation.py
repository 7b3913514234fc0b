"""Explanations: the mathematics of a formulation, the size of its model, the prices of links.

`explain` says what a formulation comes to on a problem before solving it. `markdown` writes the
docstring of a formulation as paragraphs, lists, and formulas set apart. The convention of these
docstrings: lines that are indented by four or more, beyond the text of the list item in which they
lie, are formulas whose columns mean something; lists begin with ``*`` or ``1.``; a few words and a
colon at the beginning of a paragraph say what it is about, and so does a short line without a full
stop that stands alone; names in backticks, variables with their indices and what stands between two
spaces on either side are code. All else is text, in which nothing may be taken for markup.

`prices` of links and of shared limits come from the duals of linear programs (`ccl.bound`). The
program of a fluid (`formulations.engines.orbit_lp.program`) has for each orbit i of links or limits
the row  busy[i] . W <= R,  in which busy divides by b[i] |i|: its dual, the share of i, says by how
much of itself R falls for a little more bandwidth of all of i's members, and the shares add up to
1, as R stands in no other row. A member has an equal part of the share: the average of any optimal
duals over the symmetries is optimal too. With T in µs, share s and b in GB/s the price of a row is

    -dT/db = T s / b,

Of a device that may not copy there is a vertex for each next stop, whatever the cluster looks
like: programs without them are as good only while what enters a switch can leave it
(`formulations.engines.orbit_lp.lp.relays_suffice`), and one link changed alone would break that.

In the linear program of amounts (`formulations.models.te_ccl_lp`; `PricedFlow`) K epochs of tau
stay, with all delays in them, and capacities are scaled together until everything just fits:

    minimise    rho
    subject to  the rows of the model but for its objective
                sum over s of f[k, e, s] <= rho capacity[e] share[k, e];  shared limits likewise

Then K tau rho is the time in which epochs that are rho times as long send it all, latencies left
as they are in epochs. Capacities grow with bandwidths, and rho is in no other row; so the duals y
of these rows have sum of y capacity = 1, and -d(K tau rho)/db of a link is K tau rho times its sum
of y capacity over all epochs, over b. Rows of limited buffers are left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ccl.bound import Prices
from ccl.errors import CclError, Infeasible, ProblemError
from ccl.options import make_options
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.topology import Topology
from formulations.bounds import quick_bounds
from formulations.bounds.prices import best_of_all
from formulations.core.registry import Formulation, Speed, formulation, speed_of
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.decompose import commodities
from formulations.engines.epoch_grid.epochs import EpochGrid
from formulations.engines.epoch_grid.windows import by_hops, too_short
from formulations.engines.steady_state import demands_of, refusal, row_bandwidths
from formulations.engines.te_ccl.flow_lp import FlowModel
from formulations.solvers import cp

_ITEM = re.compile(r"(\*|\d+\.) +(?=\S)")
_LABEL = re.compile(
    r"(?:[A-Z][\w'*-]*(?: (?!is |are |become )[\w'()*-]+){0,4}:"
    r"|(?:Decisions?|Rate|Trees|Trees packed|Few trees|Switches)\.) "
)
_AGAIN = re.compile(r"(?:Source|Decisions?|Master|Variables|Constants|Solution):? ")
"""What begins a paragraph of its own even where no empty line is before it."""
_CODE = re.compile(
    r"\*\*(?P<strong>[^*]+)\*\*|(?<!\S)\*(?P<stressed>[\w-]+)\*|``(?P<double>[^`]+)``|`(?P<single>[^`]+)`|(?P<indexed>\b[A-Za-z]\w*\[[^\[\]]*\])"
    r"|(?<=  )(?P<formula>\S(?:(?!(?!floor)[a-z]{4})\S| (?! ))*?)(?P<after>[.,;:]?)(?=  |$)"
)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$])")
_FORMULA = 4
_LONE = 40
"""Characters of a line that may be a heading."""


@dataclass
class _Block:
    """Lines that belong together, and the column in which their text begins."""

    kind: str
    column: int
    mark: str = ""
    lines: list[str] = field(default_factory=list)


def markdown(words: str) -> str:
    """Return a docstring as Markdown."""
    formatted = [_formatted(each) for each in _blocks(words)]
    return "\n\n".join(formatted) + "\n"


def lead(words: str) -> str:
    """Return what a docstring says first, as one line of plain text."""
    return " ".join(_blocks(words)[0].lines).replace("``", "").replace("`", "")


def _blocks(words: str) -> list[_Block]:
    """Part a docstring into texts, list items and formulas."""
    found: list[_Block] = []
    column, fresh = 0, True
    for line in words.strip("\n").split("\n"):
        if not line.strip():
            fresh = True
            continue
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(line.lstrip())
        if item and indent < _FORMULA and (fresh or column):
            column = indent + len(item[0])
            found.append(_Block("item", indent, item[1], [line[column:]]))
        elif indent >= column + _FORMULA:
            _add_formula(found, line, column=column, fresh=fresh)
        else:
            column = column if indent >= column else 0
            new = fresh or found[-1].kind == "formula" or bool(_AGAIN.match(line))
            if new:
                found.append(_Block("text", column))
            found[-1].lines.append(line.strip())
        fresh = False
    return found


def _add_formula(found: list[_Block], line: str, *, column: int, fresh: bool) -> None:
    """Add a line to the formula before it, over an empty line too."""
    if not found or found[-1].kind != "formula":
        found.append(_Block("formula", column))
    elif fresh:
        found[-1].lines.append("")
    found[-1].lines.append(line)


def _formatted(block: _Block) -> str:
    if block.kind == "formula":
        return _fenced(block.lines, " " * block.column)
    # Two spaces set formulas in a text apart, so those at the ends of lines stay.
    said = " ".join(block.lines)
    inner = " " * (block.column + len(block.mark) + 1) if block.mark else " " * block.column
    label = _LABEL.match(said)
    if len(block.lines) == 1 and len(said) <= _LONE and not block.mark and said[-1].isalnum():
        return f"#### {_inline(said)}"
    text = _inline(said)
    if label:
        text = f"**{_inline(label[0].strip())}** {_inline(said[len(label[0]) :])}"
    return f"{block.mark} {text}" if block.mark else inner + text


def _fenced(lines: list[str], before: str) -> str:
    least = min(len(line) - len(line.lstrip()) for line in lines if line)
    body = [before + _signs(line[least:]) if line else "" for line in lines]
    # Named, lest a page colours it as the language that it takes it for.
    return "\n".join([f"{before}```text", *body, f"{before}```"])


def _signs(line: str) -> str:
    """Write ≤ and ≥, and keep what follows in its column."""
    for plain, sign in (("<=", "≤"), (">=", "≥")):
        while plain in line:
            head, tail = line.split(plain, 1)
            gap = re.search(r" {3,}", tail)
            tail = tail if gap is None else tail[: gap.start()] + " " + tail[gap.start() :]
            line = head + sign + tail
    return line


def _inline(said: str) -> str:
    """Return a text with its names as code and everything else as it is written."""
    parts: list[str] = []
    last = 0
    for match in _CODE.finditer(said):
        parts += [_escaped(said[last : match.start()]), _set_apart(match)]
        last = match.end()
    return re.sub(r" {2,}", " ", "".join([*parts, _escaped(said[last:])]))


def _set_apart(match: re.Match[str]) -> str:
    """Return a name or a formula as code, and stressed words stressed."""
    if match["strong"] or match["stressed"]:
        return f"**{match['strong']}**" if match["strong"] else f"*{match['stressed']}*"
    code = match["double"] or match["single"] or match["indexed"] or match["formula"]
    return f"`{_signs(code)}`" + (match["after"] or "")


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _signs(text))


@dataclass(frozen=True)
class Rows:
    """A group of constraints.

    Parameters
    ----------
    name
        As the model calls it.
    words
        What each of them says.
    many
        Rows on the problem, or None where nobody knows.
    """

    name: str
    words: str
    many: int | None = None


@dataclass(frozen=True)
class Explanation:
    """What a formulation says.

    Parameters
    ----------
    name, title, reference
        As in `formulations.available`.
    collectives
        Kinds that it takes.
    mathematics
        Markdown: sets, variables, constraints, objective, and where they are from.
    problem
        The problem, or None.
    refusal
        Why it does not take the problem, in words, or None.
    size
        Of the model before it is built; None where there is no model or nobody knows, which `note`
        says.
    speed
        How long such a model takes, in words; None where there is no size.
    groups
        The constraints by what they say; `many` of them add up to the size's constraints.
    note
        Which of several models `size` is about, what was assumed, or why it has no size.
    """

    name: str
    title: str
    reference: str
    collectives: tuple[str, ...]
    mathematics: str
    problem: Problem | None = None
    refusal: str | None = None
    size: ModelSize | None = None
    speed: Speed | None = None
    groups: tuple[Rows, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        """Return the facts in lines, then the mathematics."""
        lines = [f"{self.title} ({self.name})", self.reference]
        lines.append(f"solves {', '.join(self.collectives)}")
        if self.problem is not None:
            lines += ["", *self.facts]
        return "\n".join([*lines, "", self.mathematics])

    @property
    def facts(self) -> list[str]:
        """What it comes to on the problem, in sentences."""
        if self.problem is None:
            return []
        if self.refusal is not None:
            return [f"it cannot take this: {self.refusal}"]
        if self.size is None:
            return [self.note]
        size = self.size
        texts = [size_words(size)]
        texts += [f"takes {self.speed.words}"] if self.speed is not None else []
        texts += [self.note] if self.note else []
        return texts + [
            f"{each.many:,} x {each.name}: {each.words}" for each in self.groups if each.many
        ]

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the rich display of a notebook: Markdown, with the facts first."""
        return {"text/plain": str(self), "text/markdown": self.markdown}

    @property
    def markdown(self) -> str:
        """All of it as Markdown."""
        parts = [f"### {self.title}", self.reference]
        facts = self.facts
        if facts:
            many = sum(bool(each.many) for each in self.groups) if self.size else 0
            parts += ["\n".join(f"- {each}" for each in facts[: len(facts) - many])]
        if self.size is not None and self.groups:
            rows = [f"| {e.name} | {e.words} | {e.many:,} |" for e in self.groups if e.many]
            parts.append("\n".join(["| constraints | each says | rows |", "|---|---|--:|", *rows]))
        return "\n\n".join([*parts, self.mathematics])


def size_words(size: ModelSize) -> str:
    """Describe a size and its estimated memory."""
    return (
        f"{size.variables:,} variables, {size.constraints:,} constraints, "
        f"{size.nonzeros:,} nonzeros, about {size.memory / 1e6:,.3g} MB of memory"
    )


def explain(
    name: str, problem: Problem | None = None, *, options: Mapping[str, Any] | None = None
) -> Explanation:
    """Explain a formulation, and what it comes to on a problem without solving it.

    Parameters
    ----------
    name
        One of `formulations.available`.
    problem
        The problem, or None.
    options
        Its options by name.

    Raises
    ------
    ProblemError
        If there is no such formulation, or an option is wrong.
    """
    found = formulation(name)
    made = make_options(found.options, options or {})
    refusal = None if problem is None else found.why_not(problem)
    estimate, note = None, ""
    if problem is not None and refusal is None:
        estimate, note = _counted(found, problem, made)
    counts = {} if estimate is None else estimate.rows
    size = None if estimate is None else estimate.size
    return Explanation(
        name=found.name,
        title=found.title,
        reference=found.reference,
        collectives=tuple(sorted(found.collectives)),
        mathematics=markdown(found.mathematics),
        problem=problem,
        refusal=refusal,
        size=size,
        speed=None if size is None else speed_of(found.model, size),
        groups=tuple(
            Rows(each, words, None if estimate is None else counts.get(each, 0))
            for each, words in found.groups.items()
        ),
        note=note,
    )


def _counted(found: Formulation, problem: Problem, options: Any) -> tuple[Any, str]:
    """Return the estimate of a model, None where it cannot be counted, and what to say of it."""
    if found.estimate is None:
        return None, NONE[found.model]
    try:
        estimate = found.estimate(problem, options)
    except CclError as error:
        return None, str(error)
    if estimate is None:
        return None, "nothing has to be chosen here, so no model is built"
    return estimate, estimate.note


NONE: dict[str, str] = {
    "none": "it constructs its plan, and there is no model to solve",
    "several": "it tries several formulations, some of which build no model",
    "lp": "it has a linear program, whose size nobody knows before it is built",
    "milp": "it has an integer program, whose size nobody knows before it is built",
    "columns": "it has a linear program that grows while it is solved",
    "cp": "it has a constraint program, whose size only its solver knows",
}
"""What is said where no size is known, by the kind of model."""


SENDING = 0.95
"""Least share of an epoch in which a link sends, as `formulations.models.te_ccl_lp` begins with."""

FLUID = "linear program of a fluid, latencies hidden"
_CLASS = ", best of all plans that add up at roots and spread from there"


def prices(
    problem: Problem,
    *,
    horizon: int | None = None,
    epoch_duration: float | None = None,
    time_limit: float | None = None,
) -> Prices:
    """Return what a little more bandwidth of each link would save of the best steady state.

    Parameters
    ----------
    problem
        The problem; chunks may be split.
    horizon
        Epochs in which all has to be there, where the linear program of amounts on epochs is to be
        priced instead of the steady state (`PricedFlow`).
    epoch_duration
        µs of one, with `horizon`; by default so long that `horizon` of them are the lower bound.
    time_limit
        Seconds for the solver, or None.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or nothing has to be sent.
    Infeasible
        If a rank cannot be reached.
    LimitReached
        If the time limit came first.
    """
    if horizon is not None:
        return _on_epochs(problem, horizon, epoch_duration, time_limit=time_limit)
    why = _why_not(problem)
    if why is not None:
        raise ProblemError(
            f"links have no prices for {problem.collective.kind} on {problem.topology}: {why}"
        )
    # CVXPY takes most of a second to load.
    from formulations.engines.orbit_lp.lp import orbit_program  # noqa: PLC0415
    from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

    pairs = demands_of(problem).only_pairs
    made = orbit_program(problem, copies="auto" if pairs else "exact")
    makespan = made.program.fastest(Backend(), time_limit)
    number = made.program.rows
    share = made.program.prices[number] / np.bincount(number)[number]
    rates = row_bandwidths(problem.topology)
    model = FLUID + ("" if best_of_all(problem, share / rates, makespan) else _CLASS)
    return _priced(problem.topology, makespan, share, model=model, exact=made.exact)


def _on_epochs(
    problem: Problem, horizon: int, tau: float | None, *, time_limit: float | None
) -> Prices:
    """Price the links in the linear program of amounts on a grid of epochs."""
    chosen = formulation("te-ccl-lp")
    why = chosen.why_not(problem)
    if why is not None:
        raise ProblemError(f"links have no prices in epochs for {problem.collective.kind}: {why}")

    bounds = quick_bounds(problem)
    run = Run(
        problem=problem, formulation=chosen.name, options={}, bounds=bounds, time_limit=time_limit
    )
    size = problem.collective.chunk_size
    duration = bounds[0].makespan / horizon if tau is None else tau
    grid = EpochGrid(problem.topology, size, duration, fluid=SENDING, windows=problem.windows)
    model = PricedFlow(link_arcs(grid), run, commodities(problem, size, symmetric=True))
    pairs = zip(model.flows.sources[model.flows.source], model.flows.goal, strict=True)
    need = by_hops(model.hops.distance, list(pairs), problem.topology)
    if horizon < need.many:
        raise Infeasible(too_short(horizon, need, each=duration))
    factor, share = model.stretched(horizon)
    words = f"linear program of amounts in {horizon} epochs, which are stretched until all fits"
    makespan = horizon * duration * factor
    return _priced(problem.topology, makespan, share, model=words, exact=False)


def _priced(
    topology: Topology, makespan: float, share: np.ndarray, *, model: str, exact: bool
) -> Prices:
    """Return prices from the shares of links, then limits, which add up to 1."""
    price = (makespan * share / row_bandwidths(topology)).tolist()
    own = dict(zip((each.ends for each in topology.links), price, strict=False))
    return Prices(
        topology=topology,
        makespan=makespan,
        links=own,
        limits={
            each.name: value for each, value in zip(topology.limits, price[len(own) :], strict=True)
        },
        model=model,
        exact=exact,
    )


def _why_not(problem: Problem) -> str | None:
    if problem.windows:
        return "links have less bandwidth for a time, and a steady state knows no time"
    why = refusal(problem)
    if why is not None:
        return why
    demands = demands_of(problem)
    if not (demands.spreads or demands.sums or demands.free):
        return "all that is wanted is where it is wanted already, and nothing has to move"
    return None


class PricedFlow(FlowModel):
    """The model of amounts with scalable capacities."""

    def stretched(self, horizon: int) -> tuple[float, np.ndarray]:
        """Return the least factor rho for all capacities and its elasticity in each link and limit.

        Parameters
        ----------
        horizon
            K.

        Returns
        -------
        tuple
            rho, and by how much of itself it falls for a little more capacity of each link and then
            each limit in all epochs, where that is unique; these add up to 1.

        Raises
        ------
        Infeasible
            If hops take more epochs.
        LimitReached
            If the time limit came first.
        """
        cells = self._cells(horizon)
        sent, held, read = cells.variables()
        factor = cp.Variable(nonneg=True)
        found = list(self._capacities(cells, sent.size))
        fits: list[Any] = [matrix @ sent <= capacity * factor for matrix, capacity, _ in found]
        balance = self._balance(cells, sent, held, read)
        model = cp.Problem(cp.Minimize(factor), [*balance, *fits])
        outcome = self.run.backend.solve(model, time_limit=self.run.left, method="simplex")
        elasticity = [
            np.abs(np.asarray(rule.dual_value)) * capacity
            for rule, (_, capacity, _) in zip(fits, found, strict=True)
        ]
        links = len(self.hops.topology.links)
        shares = np.zeros(links + len(self.hops.topology.limits))
        np.add.at(shares, found[0][2], elasticity[0])
        # One stands for all of its images, which have equal parts of its price.
        orbit = self.flows.links.min(axis=0)
        shares[:links] = shares[orbit] / np.bincount(orbit, minlength=links)[orbit]
        for each, (_, _, members) in zip(elasticity[1:], found[1:], strict=True):
            shares[members] = each.sum() / len(members)
        return outcome.objective, shares
