"""A comparison as one HTML file: plot, table, and two schedules in step; opens from disk.

The plot is SVG made here, so that the page holds no library of charts. Schedules that are chosen
are in the page already; those for which there is no room are counted.
"""

import html
from collections.abc import Mapping
from typing import Any

from ccl import text
from ccl.layout import layout
from ccl.serialization.quantity import format_size
from formulations.analyses.comparison import Comparison
from widgets.charts.comparison import Quantity, marks
from widgets.pages.writers import in_themes, pictures, whole_page
from widgets.print.style import Style
from widgets.view_model.scene import choices, drawing, films, first_pair, moves, row_of
from widgets.words import HEADS, Line, crossover_words, line_of, size_words

MOST_MOVES = 150_000
"""Transfers of all schedules of a page together; each is about a letter of it when packed."""

_THEMES: tuple[Style, ...] = ("light", "dark")
_QUANTITIES: tuple[tuple[Quantity, str], ...] = (
    ("time", "Time"),
    ("ratio", "× bound"),
    ("algbw", "algbw"),
)
_STYLE = """
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 48px }
h1 { margin: 0; font-size: 22px; line-height: 1.25; font-weight: 680 }
h2 { margin: 34px 0 10px; font-size: 13px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim); font-weight: 680 }
p { margin: 6px 0; color: var(--dim) }
.plots input { position: absolute; opacity: 0 }
.plots label { display: inline-block; padding: 4px 12px; margin: 0 2px 10px 0; border: 1px solid var(--line); border-radius: 8px; cursor: pointer; color: var(--dim) }
.plots input:checked + label { color: var(--text); background: var(--surface); border-color: var(--accent) }
.plots input:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 2px }
.plot { display: none; background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 16px }
#q0:checked ~ .p0, #q1:checked ~ .p1, #q2:checked ~ .p2 { display: block }
.plot svg { display: block; width: 100%; height: auto }
.plot svg > rect:first-of-type { fill: none }
.still, .still div, .still svg { width: 100%; height: 100% }
#pair { height: 620px; border: 1px solid var(--line); border-radius: 12px; overflow: hidden }
.rows { overflow-x: auto; background: var(--surface); border: 1px solid var(--line); border-radius: 12px }
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: 7px 14px; text-align: left; white-space: nowrap; vertical-align: top }
thead th { color: var(--dim); font-weight: 600; font-size: 12px }
tbody .size th { padding-top: 14px; border-top: 1px solid var(--line); font-weight: 650 }
.why td { padding-top: 0; white-space: normal; color: var(--dim); font-size: 12.5px }
.none { color: var(--dim) }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px }
.best { margin-left: 8px; padding: 1px 7px; border-radius: 999px; font-size: 11px; font-weight: 620; color: var(--accent); border: 1px solid currentColor }
@media (max-width: 700px) { main { padding: 18px 12px } #pair { height: 460px } }
"""  # noqa: E501  a rule a line
_SCRIPT = """
const films = new Map(state.films.map((film) => [film.key, film]));
const chosen = () => model.get("chosen").map((key) => films.get(key) ?? null);
const model = new PlainModel({ ...state, films: state.chosen.map((key) => films.get(key)) });
model.on("change:chosen", () => model.receive("films", chosen()));
const element = document.getElementById("pair");
element.replaceChildren();
mount(element, model);
"""


def comparison_html(
    comparison: Comparison,
    positions: Mapping[str, tuple[float, float]] | None = None,
    *,
    theme: str = "auto",
) -> str:
    """Return a page that shows a comparison and plays two of its schedules.

    Parameters
    ----------
    comparison
        What was found.
    positions
        Middle of each device by name; by default those of `ccl.layout`.
    theme
        ``auto``, ``light`` or ``dark``.

    Raises
    ------
    ImportError
        If the canvas was not built.
    """
    problem = comparison.problem
    topology = problem.topology
    drawn = drawing(topology, positions or layout(topology))
    shown, left_out = _choices(comparison)
    state = {
        "drawing": drawn,
        "choices": shown,
        "chosen": _chosen(comparison, [each["key"] for each in shown]),
        "films": films(comparison, [each["key"] for each in shown]),
        "theme": theme,
        "height": "100%",
    }
    title = f"{problem.collective.kind.capitalize()} on {topology.name}"
    methods = text.count(len(comparison.methods), "method")
    sizes = text.count(len(comparison.sizes), "size")
    about = (
        f"{methods} at {sizes}, each plan verified, replayed, and held against a bound that no "
        "plan can beat."
    )
    parts = [
        f"<h1>{html.escape(title)}</h1><p>{html.escape(about)}</p>",
        _plots(comparison, theme),
        _players(drawn, left_out, theme=theme) if shown else "",
        f"<h2>Results</h2>{_table(comparison, theme)}",
    ]
    return whole_page(
        title,
        f"<main>{''.join(parts)}</main>",
        state,
        script=_SCRIPT if shown else "",
        style=_STYLE,
        about=about,
        theme=theme,
    )


def _choices(comparison: Comparison) -> tuple[list[dict[str, str]], int]:
    """Return the schedules that the page has room for, the first pair before all, and the rest."""
    pair = first_pair(comparison)
    every = choices(comparison)
    ordered = sorted(every, key=lambda each: each["key"] not in pair)
    room, kept = MOST_MOVES, set()
    for each in ordered:
        row = row_of(comparison, each["key"])
        size = 0 if row is None or row.result is None else moves(row.result.timeline)
        if size <= room or each["key"] in pair:
            room -= size
            kept.add(each["key"])
    shown = [each for each in every if each["key"] in kept]
    return shown, len(every) - len(shown)


def _chosen(comparison: Comparison, keys: list[str]) -> list[str]:
    return [key for key in first_pair(comparison) if key in keys]


def _plots(comparison: Comparison, theme: str) -> str:
    """Return the plot in three forms, of which one is shown at a time, without a script."""
    from widgets.print.painter import svg  # noqa: PLC0415 - it loads matplotlib
    from widgets.print.plots import comparison_picture  # noqa: PLC0415 - it loads matplotlib

    switches, plots = [], []
    for i, (quantity, label) in enumerate(_QUANTITIES):
        checked = " checked" * (i == 0)
        switches.append(f'<input type="radio" name="quantity" id="q{i}"{checked}>')
        switches.append(f'<label for="q{i}">{label}</label>')
        drawn: dict[str, str] = {
            style: svg(comparison_picture(comparison, quantity=quantity, style=style, width=900.0))
            for style in _THEMES
        }
        plots.append(f'<div class="plot p{i}">{in_themes(drawn, theme)}</div>')
    words = "".join(f"<p>{html.escape(each)}.</p>" for each in crossover_words(comparison))
    return f'<h2>Over sizes</h2><div class="plots">{"".join(switches + plots)}</div>{words}'


def _players(drawn: Mapping[str, Any], left_out: int, *, theme: str) -> str:
    """Return where the two players will be, with a picture of the cluster until then."""
    told = ""
    if left_out:
        many = "schedule is" if left_out == 1 else "schedules are"
        told = f"<p>{left_out} more {many} too large for this page.</p>"
    picture = in_themes(pictures(drawn, None, ()), theme)
    words = "<noscript><p>Allow scripts to play two schedules side by side.</p></noscript>"
    return (
        f'<h2>Side by side</h2>{words}<div id="pair"><div class="still">{picture}</div></div>{told}'
    )


def _table(comparison: Comparison, theme: str) -> str:
    colors = {
        each: {name: mark.color for name, mark in marks(comparison, each).items()}
        for each in ("light", "dark")
    }
    heads = "".join(f'<th scope="col">{each}</th>' for each in HEADS)
    body = []
    for size in comparison.sizes:
        words = html.escape(size_words(comparison, size))
        body.append(
            f'<tr class="size"><th colspan="{len(HEADS)}" scope="rowgroup">{words}</th></tr>'
        )
        for row in comparison.at(size):
            line = line_of(comparison, row)
            keys = {each: _key(colors[each][line.method]) for each in colors}
            body.append(_row(line, in_themes(keys, theme, tag="span")))
    sizes = ", ".join(map(format_size, comparison.sizes))
    return (
        f'<div class="rows" tabindex="0" role="region" aria-label="Results for {sizes}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _key(color: str) -> str:
    return f'<i class="key" style="background:{color}"></i>'


def _row(line: Line, key: str) -> str:
    name = f"{key}{html.escape(line.method)}"
    if not line.cells:
        why = f'<td class="none" colspan="{len(HEADS) - 1}">{html.escape(line.why_not)}</td>'
        return f"<tr><td>{name}</td>{why}</tr>"
    best = '<span class="best">fastest</span>' if line.fastest else ""
    cells = "".join(f"<td>{html.escape(each)}</td>" for each in line.cells)
    why = ""
    if line.why:
        why = f'<tr class="why"><td colspan="{len(HEADS)}">{html.escape(line.why)}</td></tr>'
    return f"<tr><td>{name}{best}</td>{cells}</tr>{why}"
