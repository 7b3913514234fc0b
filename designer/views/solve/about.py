"""What opens on "About": a formulation's mathematics, and what it comes to on this problem.

Opening "About": the mathematics at once, the sizes when they are counted.
"""

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html

from ccl import text
from ccl.errors import CclError
from designer.session import topology_of
from designer.shell import ids, ui
from designer.shell.request import Json, callback, problem_of, read_request
from designer.views.solve.plan_card import short
from formulations import Speed, explain
from formulations.analyses.explanation import Explanation

TONES = {Speed.INSTANT: "good", Speed.SECONDS: "good", Speed.MINUTES: "plain", Speed.HOURS: "bad"}
"""How a class of time looks."""

MOST_GPUS = 512
"""GPUs above which nothing is counted while somebody reads."""


def dialog() -> dmc.Modal:
    """Return the dialog, closed."""
    return ui.modal(
        ids.MATHEMATICS,
        "About this formulation",
        900,
        html.Div(id=ids.ABOUT_HEAD),
        html.Div(id=ids.ABOUT_SIZE),
        html.Div(id=ids.MATHEMATICS_TEXT, tabIndex=0),
        dcc.Store(id=ids.ABOUT_REQUEST),
        keepMounted=False,
    )


def about(name: str) -> list[Any]:
    """Show what a formulation says, which takes no problem."""
    found = explain(name)
    reference = found.reference
    source: Any = html.Span(reference)
    if reference.startswith("https://"):
        source = dmc.Anchor(reference, href=reference, target="_blank", size="sm")
    return [
        ui.div("ds-about-head", html.H3(found.title), ui.div("ds-quiet", source)),
        ui.div(
            "ds-tags",
            [html.Span(each, className="ds-tag") for each in found.collectives],
            aria_label="Solves",
        ),
    ]


def mathematics(name: str) -> Any:
    """Show the docstring, rendered."""
    # Its text comes from our own modules; of a page's own tags nothing is let through.
    return dcc.Markdown(explain(name).mathematics, className="ds-mathematics", link_target="_blank")


def counting() -> html.Div:
    """Stand where the sizes will be."""
    return ui.div(
        "ds-card ds-about-size ds-quiet",
        dmc.Loader(size=12),
        html.Span("Counting the model of this problem …"),
        role="status",
    )


def sized(name: str, question: Mapping[str, Any] | None) -> Any:
    """Show what a formulation comes to on what is drawn and asked.

    Parameters
    ----------
    name
        Of the formulation.
    question
        ``{topology, request}`` as the page keeps them, or None.
    """
    if not question or not question["topology"]["devices"]:
        return _quiet(
            "Draw a cluster, and the size of its model is shown here before it is solved."
        )
    if sum(each["kind"] == "gpu" for each in question["topology"]["devices"]) > MOST_GPUS:
        return _quiet(f"With more than {MOST_GPUS} GPUs its size is counted when it is solved.")
    try:
        request = read_request(question["request"])
        problem = problem_of(topology_of(question["topology"]), request)
        options = request.options if request.formulation == name else {}
        found = explain(name, problem, options=options)
    except CclError as error:
        return _quiet(text.sentence(str(error)))
    if found.refusal is not None:
        return ui.banner("warning", "bad", f"Here it does not apply: {found.refusal}.")
    if found.size is None:
        return _quiet(text.sentence(found.note))
    return _card(found)


def _card(found: Explanation) -> html.Div:
    size, speed = found.size, found.speed
    assert size is not None
    figures = [
        (short(size.variables), "variables", f"{size.variables:,}"),
        (short(size.constraints), "constraints", f"{size.constraints:,}"),
        (short(size.nonzeros), "nonzeros", f"{size.nonzeros:,}"),
        (text.size(size.memory), "memory, about", f"{size.memory:,.0f} bytes"),
    ]
    rows = [
        html.Tr([html.Td(html.B(each.name)), html.Td(each.words), html.Td(f"{each.many:,}")])
        for each in found.groups
        if each.many
    ]
    head = html.Tr([html.Th("Constraints"), html.Th("Each says"), html.Th("Rows")])
    return ui.div(
        "ds-card ds-about-size",
        ui.div(
            "ds-figures ds-about-figures",
            [
                html.Div([html.B(value), html.Span(label)], title=title)
                for value, label, title in figures
            ],
        ),
        ui.div(
            "ds-about-note",
            html.Span(f"Takes {speed.words}", className=f"ds-speed ds-{TONES[speed]}")
            if speed is not None
            else None,
            html.Span(text.sentence(found.note), className="ds-quiet"),
        ),
        html.Table([html.Thead(head), html.Tbody(rows)], className="ds-groups"),
    )


def _quiet(sentence: str) -> html.Div:
    return ui.div("ds-card ds-about-size ds-quiet", sentence)


def register(app: Dash) -> None:
    """Wire the dialog."""

    @callback(
        app,
        output={
            "mathematics_opened": Output(ids.MATHEMATICS, "opened"),
            "about_head": Output(ids.ABOUT_HEAD, "children"),
            "text": Output(ids.MATHEMATICS_TEXT, "children"),
            "about_size": Output(ids.ABOUT_SIZE, "children"),
            "about_request": Output(ids.ABOUT_REQUEST, "data"),
        },
        inputs={"clicks": Input(ids.MATHEMATICS_OPEN, "n_clicks")},
        state={"name": State(ids.FORMULATION, "value")},
    )
    def on_open(clicks: int, name: str | None) -> Json:
        if not name:
            return {}
        asked = {"name": name, "n": clicks}
        return {
            "mathematics_opened": True,
            "about_head": about(name),
            "text": mathematics(name),
            "about_size": counting(),
            "about_request": asked,
        }

    # After the dialog is there, so that nobody waits for a large model to be counted.
    @app.callback(
        Output(ids.ABOUT_SIZE, "children", allow_duplicate=True),
        Input(ids.ABOUT_REQUEST, "data"),
        State(ids.PROBLEM, "data"),
    )
    def on_asked(asked: Json, problem: Json | None) -> Any:
        return sized(asked["name"], problem)
