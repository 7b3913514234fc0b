"""The rows of a comparison as a table that fills in: size by size, the fastest first.

What a row of a comparison has to say for itself: the formula beside the replay, how it ended.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from ccl.bound import Bound
from ccl.result import PROOF_TOLERANCE, ClosedForm, Result, Status
from ccl.serialization.quantity import format_size
from designer.shell import ui
from designer.shell.request import method_title
from designer.views.compare.running import Standing
from formulations.analyses.comparison import Comparison, Method, Row
from widgets.charts.comparison import SYMBOLS, Mark, marks
from widgets.view_model.scene import MOST_PLAYERS, key_of
from widgets.words import BOUND_LABELS, HEADS, Line, line_of


def detail(comparison: Comparison, row: Row) -> html.Div:
    """Return the details of a row that has a result."""
    result = row.result
    assert result is not None
    key = key_of(row)
    buttons = [
        ui.button(
            "Open on the canvas",
            {"compare-open": key, "from": "detail"},
            "eye",
            size="compact-sm",
            variant="light",
        ),
        ui.button(
            "Play beside another",
            {"compare-beside": key},
            "film",
            size="compact-sm",
            variant="default",
        ),
    ]
    return ui.div(
        "ds-cmp-both",
        ui.div("ds-cmp-formula", _formula(result.closed_form, result.makespan)),
        html.Div([*_facts(comparison, row, result), ui.div("ds-row", buttons)]),
    )


def _formula(form: ClosedForm | None, makespan: float) -> list[Any]:
    """Show the published formula, what becomes of it step by step, and the replay."""
    if form is None:
        return [
            html.H3("Formula and simulation"),
            html.P(f"No formula is published for this plan. The replay takes {_us(makespan)}."),
        ]
    rows = (
        ("the formula", form.makespan),
        ("every message alone on its path", form.alone),
        ("step after step, all of a step together", form.in_steps),
        ("the replay", makespan),
    )
    most = max(value for _, value in rows)
    bars = [
        part
        for i, (words, value) in enumerate(rows)
        for part in (
            html.Dt(words),
            html.Dd(
                [
                    html.Span(
                        html.I(style={"width": f"{value / most:.1%}"}),
                        className="ds-track",
                        style={"--tone": "var(--ds-accent)" if i == len(rows) - 1 else None},
                    ),
                    html.B(_us(value)),
                ]
            ),
        )
    ]
    return [
        html.H3(["Formula and simulation", html.Code(form.expression)]),
        html.Dl(bars),
        html.P(text.sentence(form.why(makespan))),
        html.P(
            f"{text.count(form.steps, 'step')}; α = {text.duration(form.alpha)} and 1/β = "
            f"{text.bandwidth(1e-3 / form.beta)}, the slowest of the paths that they use.",
            className="ds-note",
        ),
    ]


def _facts(comparison: Comparison, row: Row, result: Result) -> list[Any]:
    stop = str(result.stop)
    found = result.found_by and result.found_by != result.formulation
    lines: list[Any] = [f"{stop[:1].upper()}{stop[1:]}."]
    if found:
        lines.append(f"The plan is by {method_title(result.found_by)}.")
    bound, whole = comparison.bound(row.size), result.whole_bound
    lines.append(f"Bound for every plan: {_kind(bound)}, {_us(bound.makespan)}.")
    if whole is not None and result.whole_gap is not None:
        size = text.size(result.problem.collective.chunk_size)
        lines.append(
            f"For plans that keep chunks of {size} whole: {_kind(whole)}, {_us(whole.makespan)}, "
            f"so that it is {_share(result.whole_gap)} above that."
        )
    if result.size is not None:
        model = result.size
        lines.append(
            f"The model has {model.variables:,} variables and {model.constraints:,} constraints."
        )
    lines += [text.sentence(each) for each in result.log]
    return [html.H3("How it was found"), html.Ul([html.Li(each) for each in lines])]


def _kind(bound: Bound) -> str:
    label = BOUND_LABELS[bound.kind]
    return f"{label[0].lower()}{label[1:]}"


def _share(gap: float) -> str:
    """Keep the number and its sign in one line."""
    return text.share(gap).replace(" ", "\u00a0")


def _us(makespan: float) -> str:
    return text.duration(makespan)


_SHAPES = dict(zip(SYMBOLS, "●■◆▲✚▼⬟✖", strict=True))
"""The markers of the plot as letters."""
_STATUS_COLUMN, _MAKESPAN_COLUMN, _FORMULA_COLUMN, _GAP_COLUMN = (
    HEADS.index(each) - 1 for each in ("Status", "Makespan", "Formula", "Gap")
)
_BELOW = (
    "Below the lower bound, which no plan can be: the formula leaves out how messages share links. "
    "What counts is the makespan, from the replay"
)
_MICROSECONDS = {"µs": 1, "ms": 1e3, "s": 1e6}

COLUMN_HELP = {
    "Formula": "What a published, simplified formula says of the plan; it may leave out that "
    "messages share links, and its details say why it differs",
    "Gap": "How far it is above the bound that holds for every plan of this size; "
    "the bar is as long as the gap is wide",
    "Solved in": "Building and compiling models included, bounds left out",
    "Variables": "Of the largest model, where there was one",
}
"""What the heads mean."""

Marks = Mapping[str, tuple[Mark, Mark]]
"""How each method is drawn in light and in dark."""


def table(standing: Standing, *, opened: str, picked: Sequence[str] = ()) -> html.Table:
    """Return the table.

    Parameters
    ----------
    standing
        Where the comparison stands.
    opened
        Key of the row whose details are shown, or nothing.
    picked
        Keys of the rows that are ticked, to be watched in step.
    """
    comparison = standing.comparison
    light, dark = marks(comparison, "light"), marks(comparison, "dark")
    both = {name: (light[name], dark[name]) for name in light}
    body = []
    for size in comparison.sizes:
        body.append(_size(comparison, size))
        rows = comparison.at(size)
        for row in rows:
            body += _row(comparison, row, look=both, opened=opened, picked=picked)
        there = {str(row.method) for row in rows}
        waiting = [each for each in comparison.methods if str(each) not in there]
        body += [_waiting(each, size, standing=standing, look=both) for each in waiting]
    heads = [
        html.Th(
            [each, html.Small("simplified")] if each == "Formula" else each,
            scope="col",
            title=COLUMN_HELP.get(each),
        )
        for each in HEADS
    ]
    return ui.table("Methods and sizes", "ds-cmp-table", heads, body)


def _size(comparison: Comparison, size: float) -> html.Tr:
    bound = comparison.bound(size)
    words = [html.B(format_size(size)), html.Span(f"lower bound {text.duration(bound.makespan)}")]
    return html.Tr(html.Th(words, colSpan=len(HEADS), scope="rowgroup"), className="ds-cmp-size")


def _row(
    comparison: Comparison, row: Row, *, look: Marks, opened: str, picked: Sequence[str]
) -> list[html.Tr]:
    line, key = line_of(comparison, row), key_of(row)
    if row.result is None:
        why = html.Td(text.sentence(line.why_not), colSpan=len(HEADS) - 1, title=line.why_not)
        name = html.Th(_name(row.method, look), scope="row")
        return [html.Tr([name, why], className="ds-cmp-none")]
    shown = key == opened
    tick = _tick(key, row, picked)
    head = html.Th(
        [_more(key, line, shown=shown), tick, _open(row, key, line, look=look)], scope="row"
    )
    cells = [_cell(number, words, row, comparison) for number, words in enumerate(line.cells)]
    found = [
        html.Tr([head, *cells], className="ds-cmp-row", **ui.attributes(data_shown=str(shown)))
    ]
    if shown:
        whole = html.Td(detail(comparison, row), colSpan=len(HEADS))
        found.append(html.Tr(whole, className="ds-cmp-detail"))
    return found


def bar(comparison: Comparison, row: Row) -> float:
    """Return how long the bar of a gap is, as a share of that of the widest gap of its size."""
    gaps = [comparison.gap(each) or 0.0 for each in comparison.at(row.size)]
    return (comparison.gap(row) or 0.0) / max(*gaps, PROOF_TOLERANCE)


def _cell(number: int, words: str, row: Row, comparison: Comparison) -> html.Td:
    result = row.result
    assert result is not None
    if number == _GAP_COLUMN:
        track = html.Span(
            html.I(style={"width": f"{bar(comparison, row):.1%}"}),
            className="ds-track",
            title="The longer, the further above the bound; full is the widest gap of this size",
        )
        return html.Td([words, track])
    if number == _STATUS_COLUMN:
        short = "best with whole chunks" if result.status is Status.WHOLE else words
        good = result.status is Status.OPTIMAL
        return html.Td(short, className="ds-cmp-good" if good else "", title=words)
    if number == _MAKESPAN_COLUMN:
        return html.Td(makespan_words(comparison, row))
    form, bound = result.closed_form, comparison.bound(row.size)
    below = form is not None and form.makespan < bound.makespan * (1 - PROOF_TOLERANCE)
    if number == _FORMULA_COLUMN and below:
        return html.Td(words, className="ds-cmp-below", title=_BELOW)
    return html.Td(words)


def makespan_words(comparison: Comparison, row: Row) -> str:
    """Write a makespan in three digits, in four where another of its size would look the same."""
    results = [each.result for each in comparison.at(row.size) if each.result is not None]
    assert row.result is not None
    makespan = row.result.makespan
    words = text.duration(makespan)
    alike = [each.makespan for each in results if text.duration(each.makespan) == words]
    if max(alike) <= min(alike) * (1 + PROOF_TOLERANCE):
        return words
    unit = words.split()[-1]
    return f"{text.number(makespan / _MICROSECONDS[unit], 4)} {unit}"


def _more(key: str, line: Line, *, shown: bool) -> html.Button:
    return ui.press(
        ui.icon("chevron"),
        {"compare-more": key},
        "ds-cmp-more",
        title="Formula and details",
        aria_expanded=shown,
        aria_label=f"Details of {method_title(line.method)}",
    )


def _tick(key: str, row: Row, picked: Sequence[str]) -> dmc.Checkbox:
    words = f"Watch {row.method} at {format_size(row.size)} in step"
    return dmc.Checkbox(
        id={"compare-pick": key},
        checked=key in picked,
        disabled=key not in picked and len(picked) >= MOST_PLAYERS,
        size="xs",
        className="ds-cmp-tick",
        **ui.attributes(aria_label=words),
    )


def _open(row: Row, key: str, line: Line, *, look: Marks) -> html.Button:
    best = html.Em("fastest") if line.fastest else None
    return ui.press(
        [_name(row.method, look), best],
        {"compare-open": key, "from": "row"},
        "ds-cmp-open",
        title=f"Open the plan of {method_title(str(row.method))} on the canvas",
    )


def _name(method: Method, look: Marks) -> html.Span:
    light, dark = look[str(method)]
    return html.Span(
        [
            html.I(
                _SHAPES[light.symbol],
                style={"--light": light.color, "--dark": dark.color},
                className="ds-cmp-mark",
                **ui.attributes(aria_hidden="true"),
            ),
            html.Span(method_title(str(method))),
        ],
        className="ds-cmp-name",
        title=f"{method_title(str(method))}\nOn the command line: {method}",
    )


def _waiting(method: Method, size: float, *, standing: Standing, look: Marks) -> html.Tr:
    """Return the row of what has not been solved, or is being solved now."""
    now = standing.now
    mine = now is not None and now.row is None and (now.method, now.size) == (method, size)
    if standing.running and mine:
        words: Any = [dmc.Loader(size=11), "solving"]
    else:
        words = "waiting" if standing.running else "not reached"
    cell = html.Td(html.Span(words, className="ds-cmp-wait"), colSpan=len(HEADS) - 1)
    name = html.Th(_name(method, look), scope="row")
    return html.Tr([name, cell], className="ds-cmp-none")
