"""The panels of what was found: schedule, lower bounds, gap plot and link load.

The panels at the right: verdict, bounds, link load.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, html

from ccl import text
from ccl.bound import Bound, Cut, Path
from ccl.plans import Schedule
from ccl.result import SAME, Result, Status, Stop, verdict_of
from ccl.topology import Topology
from designer.shell import ids, ui
from designer.shell.request import Json, callback, inputs, method_title, same_question, states
from designer.views.solve.header import above, answer, proof_of
from formulations.analyses.chunk_counts import chunks_per_shard
from widgets.charts.load import MOST_ROWS, ROWS, link_load_figure
from widgets.words import BOUND_LABELS, cut_words

IMPORTED = "from "
"""What the formulation of a plan begins with that came from a file of others."""

TOP = 10
"""Links that are listed by their load."""

STOPPED = "stopped, and the best schedule is kept"
"""What the page says of a solve that the user has ended."""


def summary_of(result: Result) -> Json:
    """Return what the page shows of a result, as plain values."""
    busiest = max(result.timeline.link_busy.values(), default=0.0)
    return {
        "collective": result.problem.collective.kind,
        "size": result.problem.collective.size,
        "makespan": result.makespan,
        "epochs": result.epochs,
        "algbw": result.algbw,
        "busbw": result.busbw,
        "gap": result.gap,
        "verdict": result.verdict,
        "optimal": result.status is Status.OPTIMAL,
        "whole": result.status is Status.WHOLE,
        "throughput": result.status is Status.THROUGHPUT,
        "chunk_size": result.problem.collective.chunk_size,
        "pieces": _pieces(result),
        "whole_gap": result.whole_gap,
        "steady": result.steady_makespan,
        "stop": STOPPED if result.stop is Stop.CANCELLED else str(result.stop),
        "seconds": result.solve_time,
        "formulation": result.formulation,
        "found_by": result.found_by or result.formulation,
        "busiest": busiest / result.makespan if result.makespan else 0.0,
        "log": list(result.log),
        "model": None
        if result.size is None
        else [result.size.variables, result.size.constraints, result.size.nonzeros],
        "bounds": bounds_to_json(result.bounds, result.problem.topology),
    }


def _pieces(result: Result) -> int:
    """Return into how many pieces each shard is cut that the plan sends one by one, or 1."""
    sent_whole = isinstance(result.plan, Schedule)
    custom = result.problem.collective.kind == "custom"
    return chunks_per_shard(result) if sent_whole and not custom else 1


def bounds_to_json(bounds: Sequence[Bound], topology: Topology) -> list[Json]:
    """Return bounds as plain values: those that hold for every plan come first, as given."""
    return [
        {
            "makespan": each.makespan,
            "kind": each.kind,
            "reference": each.reference,
            "whole_chunks": each.whole_chunks,
            "inside": list(each.witness.inside) if isinstance(each.witness, Cut) else None,
            "links": [list(ends) for ends in each.witness.links]
            if isinstance(each.witness, Cut)
            else None,
            "bandwidth": each.witness.bandwidth if isinstance(each.witness, Cut) else None,
            "where": _where(each, topology),
            "path": list(each.witness.devices) if isinstance(each.witness, Path) else None,
        }
        for each in sorted(bounds, key=lambda each: each.whole_chunks)
    ]


def _where(bound: Bound, topology: Topology) -> str:
    """Name what proves a bound."""
    if isinstance(bound.witness, Path):
        return f"{bound.witness.devices[0]} to {bound.witness.devices[-1]}"
    return bound.reference if bound.witness is None else cut_words(bound.witness, topology)


def cut_of(bound: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> Json:
    """Return the cut that proves one of several bounds, as the canvas draws it."""
    best = max(each["makespan"] for each in every if each["whole_chunks"] <= bound["whole_chunks"])
    name, proved = BOUND_LABELS[bound["kind"]], text.duration(bound["makespan"])
    words = f"lower bound {proved}"
    if bound["makespan"] < best * (1 - SAME):
        words = f"{proved} of the bound of {text.duration(best)}"
        name = "Cut" if bound["kind"] == "cut" else name
    plans = " for whole chunks" if bound["whole_chunks"] else ""
    return {
        "inside": bound["inside"],
        "links": bound["links"],
        "bandwidth": bound["bandwidth"],
        "makespan": bound["makespan"],
        "label": f"{name} · {text.bandwidth(bound['bandwidth'])} · {words}{plans}",
    }


def bounds_summary(
    known: Mapping[str, Any] | None, fresh: Mapping[str, Any] | None
) -> Sequence[Mapping[str, Any]]:
    """Return the bounds of a schedule that is up to date and of the drawing, or of the drawing."""
    bounds: Sequence[Mapping[str, Any]] = (beside(fresh, known) or known or {}).get("bounds", ())
    return bounds


def beside(
    summary: Mapping[str, Any] | None, known: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return a summary with the bounds for every plan that the page knows of its question, too.

    A formulation has the quick ones alone, and a plan is no farther from the best because it was
    found by another. Bounds above its makespan are of a question before.
    """
    every = [each for each in (known or {}).get("bounds", ()) if not each["whole_chunks"]]
    if summary is None or any(
        each["makespan"] > summary["makespan"] * (1 + SAME) for each in every
    ):
        return summary
    own = [each for each in summary["bounds"] if not each["whole_chunks"]]
    least = max((float(each["makespan"]) for each in own), default=0.0)
    more = [each for each in every if each["makespan"] > least * (1 + SAME)]
    if not more:
        return summary
    gap = max(0.0, summary["makespan"] / more[0]["makespan"] - 1)
    plain = not (summary["optimal"] or summary["whole"] or summary["throughput"])
    return {
        **summary,
        "gap": gap,
        "verdict": verdict_of(Status.FEASIBLE, gap=gap, chunk=0) if plain else summary["verdict"],
        "bounds": [*more, *summary["bounds"]],
    }


def cut_on_canvas(bounds: Sequence[Mapping[str, Any]], choice: str | int | None) -> int | None:
    """Return which bound's cut is on the canvas: the one chosen, or the tightest that has one."""
    drawable = [i for i, each in enumerate(bounds) if each["inside"]]
    if choice == "auto":
        return drawable[0] if drawable else None
    return choice if isinstance(choice, int) and choice in drawable else None


def rate_cut(best: Mapping[str, Any] | None, choice: str | int | None) -> Json | None:
    """Return the cut of the best rate that is on the canvas, if it is one of these."""
    cuts: Sequence[Json] = (best or {}).get("cuts", ())
    names = {f"cut{i}": each for i, each in enumerate(cuts)}
    return names.get("cut0" if choice == "auto" else str(choice))


def same_cut(bounds: Sequence[Mapping[str, Any]], cut: Mapping[str, Any]) -> int | None:
    """Return the first bound that this cut proves too, or None."""
    return next((i for i, each in enumerate(bounds) if each["inside"] == cut["inside"]), None)


def schedule_panel(
    summary: Mapping[str, Any] | None, *, stale: str = "", solving: bool = False
) -> Any:
    """Show how good the schedule is, and how it came about; `stale` says what has changed since."""
    if summary is None:
        words = (
            "The first schedule appears here as soon as there is one."
            if solving
            else "No schedule yet. Choose a collective and a method above, then solve."
        )
        return html.P(words, className="ds-card ds-quiet")
    verdict = _verdict(summary)
    if stale:
        verdict = ui.banner("clock", "plain", f"Out of date: {stale} has changed. Solve again.")
    stats = [
        _stat(text.duration(summary["makespan"]), "makespan"),
        _stat(text.share(summary["gap"]), above(summary)),
        _stat(text.bandwidth(summary["algbw"]), "algbw"),
        _stat(text.bandwidth(summary["busbw"]), "busbw"),
    ]
    return ui.div("ds-stale" if stale else "", verdict, ui.div("ds-stats", stats), _facts(summary))


def _verdict(summary: Mapping[str, Any]) -> html.Div | None:
    """Say why it stopped; of a solve that goes on its own card tells."""
    if summary.get("running"):
        return None
    picture, tone, _, more = proof_of(summary)
    return ui.banner(picture, tone, more)


def _facts(summary: Mapping[str, Any]) -> html.Div:
    kind = ui.COLLECTIVE_LABELS.get(summary["collective"], summary["collective"])
    epochs: list[Any] = (
        []
        if summary["epochs"] is None
        else [" in ", html.B(text.count(summary["epochs"], "epoch"))]
    )
    if summary["pieces"] > 1:
        epochs = [", ", html.B(f"{summary['pieces']} pieces per shard"), *epochs]
    model = summary["model"]
    size = (
        []
        if model is None
        else [f"; the model has {model[0]:,} variables and {model[1]:,} constraints"]
    )
    return ui.div(
        "ds-facts",
        html.Div(
            [
                html.B(f"{kind} of {text.size(summary['size'])}"),
                *epochs,
                ", the busiest link sends ",
                html.B(text.share(summary["busiest"])),
                " of the time. ",
                *_origin(summary),
                *size,
                ".",
                *_proof(summary),
                *_for_whole_chunks(summary),
                *_steady(summary),
            ]
        ),
        *_log(summary["log"]),
    )


def _steady(summary: Mapping[str, Any]) -> list[Any]:
    """Say what each of many repetitions takes, where the plan is one for a steady state."""
    steady = summary.get("steady")
    if not steady:
        return []
    rate = summary["size"] / steady / 1e3
    return [
        " In steady state a call takes ",
        html.B(f"{text.duration(steady)}, {text.bandwidth(rate)}"),
        ".",
    ]


def _origin(summary: Mapping[str, Any]) -> list[Any]:
    """Say which method found the schedule, or that it came from a file."""
    name = str(summary["formulation"])
    if name.startswith(IMPORTED):
        return ["It came ", html.B(name)]
    return [
        "Found by ",
        html.B(method_title(summary["found_by"])),
        f" in {text.seconds(summary['seconds'])}",
    ]


def _proof(summary: Mapping[str, Any]) -> list[Any]:
    """Say which bound proves an optimum, among all plans or those of whole chunks."""
    if not (summary["optimal"] or summary["whole"]):
        return []
    whole = bool(summary["whole"])
    bound = next(each for each in summary["bounds"] if each["whole_chunks"] is whole)
    label = BOUND_LABELS[bound["kind"]]
    told = f"{label[0].lower()}{label[1:]} ({bound['where']})"
    return [" Proved by ", html.B(f"{told}, {text.duration(bound['makespan'])}"), "."]


def _for_whole_chunks(summary: Mapping[str, Any]) -> list[Any]:
    """Say how far it is above the bound on plans that send these chunks whole, if there is one."""
    gap = summary["whole_gap"]
    if gap is None or summary["whole"]:  # which its proof tells
        return []
    bound = next(each for each in summary["bounds"] if each["whole_chunks"])
    least = html.B(f"≥ {text.duration(bound['makespan'])}")
    size = text.size(summary["chunk_size"])
    return [f" For whole chunks of {size}: ", least, f", {text.share(gap)} above."]


def _log(sentences: Sequence[str]) -> list[Any]:
    if not sentences:
        return []
    items = html.Ul([html.Li(each) for each in sentences])
    return [
        html.Details([html.Summary(f"Notes ({len(sentences)})"), items], open=len(sentences) < 3)
    ]


def bounds_panel(
    bounds: Sequence[Mapping[str, Any]],
    *,
    makespan: float | None,
    chosen: int | None,
    hint: str = "",
) -> Any:
    """List the bounds, each a bar towards the makespan; a click shows its witness."""
    if not bounds:
        words = hint or "Bounds appear while you draw: two linked GPUs are enough."
        return html.P(words, className="ds-card ds-quiet")
    longest = max([makespan or 0.0, *(each["makespan"] for each in bounds)])
    rows: list[Any] = [
        _bound(
            each, number=i, share=each["makespan"] / longest if longest else 0, pressed=i == chosen
        )
        for i, each in enumerate(bounds)
    ]
    shown = _largest(bounds, chosen)
    every = [i for i in shown if not bounds[i]["whole_chunks"]]
    card = [rows[i] for i in every]
    if len(every) < len(shown):
        about = "Only for plans that send these chunks whole"
        card.append(ui.div("ds-note ds-bounds-class", about))
        card += [rows[i] for i in shown if i not in every]
    rest = [row for i, row in enumerate(rows) if i not in shown]
    if rest:
        card.append(ui.fold(f"{text.count(len(rest), 'smaller bound')} of these kinds", *rest))
    return ui.div("ds-card ds-bounds", card)


def _largest(bounds: Sequence[Mapping[str, Any]], chosen: int | None) -> list[int]:
    """Return the places of the largest bound of each name, and of the one on the canvas."""
    best: dict[Any, int] = {}
    for i, each in enumerate(bounds):
        key = each["kind"], each["whole_chunks"]
        if key not in best or each["makespan"] > bounds[best[key]]["makespan"]:
            best[key] = i
    return [i for i in range(len(bounds)) if i in best.values() or i == chosen]


def _bound(bound: Mapping[str, Any], *, number: int, share: float, pressed: bool) -> Any:
    where = bound["inside"] or bound["path"]
    details = [bound["where"]]
    if bound["whole_chunks"]:
        details.append("for whole chunks")
    tone = "var(--ds-cut)" if pressed else "var(--ds-accent)" if number == 0 else "var(--ds-soft)"
    children = [
        html.Span(BOUND_LABELS[bound["kind"]]),
        html.B(text.duration(bound["makespan"])),
        html.Span(html.I(style={"width": f"{share:.1%}", "--tone": tone}), className="ds-track"),
        html.Small(", ".join(details)),
    ]
    if where is None:
        return ui.div("ds-bound", children)
    return ui.press(
        children, {"bound": number}, "ds-bound", title="Show on the canvas", aria_pressed=pressed
    )


def link_load() -> list[Any]:
    """Return the card with the heat map of the links."""
    return [
        ui.folding(
            "Link load",
            ui.div(
                "ds-row",
                html.Small("busiest first", className="ds-note"),
                ui.quiet("All", ids.LOAD_ALL),
            ),
        ),
        html.Ol(
            id=ids.LOAD_TOP,
            className="ds-card ds-busiest",
            **ui.attributes(aria_label="Busiest links, share of the whole run"),
        ),
        ui.div("ds-card ds-chart", ui.graph(ids.LOAD)),
    ]


def busiest_links(load: Mapping[str, Any]) -> list[html.Li]:
    """List the links that send for the largest share of the whole run."""
    rows = zip(load["links"], load["share"], load["alike"], strict=True)
    return [
        html.Li(
            [
                html.Span([link, html.Small(f" and {alike - 1} alike") if alike > 1 else ""]),
                html.B(text.share(share)),
                html.Span(html.I(style={"width": f"{share:.1%}"}), className="ds-track"),
            ]
        )
        for link, share, alike in islice(rows, TOP)
    ]


def trouble(sentence: str | None, *, begun: bool = False) -> Any:
    """Show why it cannot be solved as it stands, or nothing; what is only begun is no mistake."""
    if not sentence:
        return None
    picture, tone = ("info", "plain") if begun else ("warning", "bad")
    return ui.banner(picture, tone, text.sentence(sentence))


def _stat(value: str, label: str) -> html.Div:
    return ui.div("ds-card ds-stat", html.B(value), html.Span(label))


def register(app: Dash) -> None:
    """Wire the panels."""
    _schedule(app)
    _bounds(app)
    _charts(app)


def _schedule(app: Dash) -> None:
    @callback(
        app,
        output={
            "schedule": Output(ids.SCHEDULE, "children"),
            "trouble": Output(ids.TROUBLE, "children"),
            "answer": Output(ids.ANSWER, "children"),
            "solve_disabled": Output(ids.SOLVE, "disabled"),
        },
        inputs=inputs("summary", "stale", "request", "known", "job"),
        prevent_initial_call=False,
    )
    def on_summary(
        summary: Json | None,
        stale: bool | None,
        request: Json | None,
        known: Json | None,
        job: Json | None,
    ) -> Json:
        wrong, begun = (known or {}).get("trouble"), bool((known or {}).get("begun"))
        asked_else = "" if same_question(summary, request) else "the request"
        changed = "the drawing" if stale else asked_else
        shown = summary if changed else beside(summary, known)
        return {
            "schedule": schedule_panel(shown, stale=changed, solving=bool(job)),
            "trouble": trouble(wrong, begun=begun),
            "answer": answer(
                shown, stale=changed, solving=bool(job), trouble=None if begun else wrong
            ),
            "solve_disabled": bool(wrong or (known or {}).get("empty")),
        }


def _bounds(app: Dash) -> None:
    @callback(
        app,
        output={"bounds": Output(ids.BOUNDS, "children"), "cuts": Output(ids.CANVAS, "cuts")},
        inputs={
            **inputs("known", "summary", "stale"),
            "choice": Input(ids.CUT, "data"),
            "best": Input(ids.OPTIMUM, "data"),
        },
        state={"request": State(ids.REQUEST, "data")},
        prevent_initial_call=False,
    )
    def on_bounds(
        *, known: Any, summary: Any, choice: Any, stale: Any, best: Any, request: Any
    ) -> Json:
        fresh = summary if not stale and same_question(summary, request) else None
        bounds = bounds_summary(known, fresh)
        shown = cut_on_canvas(bounds, choice)
        makespan = fresh["makespan"] if fresh else None
        cuts = [] if shown is None else [cut_of(bounds[shown], bounds)]
        rate = rate_cut(best, choice)
        if rate is not None:
            cuts, shown = [rate], same_cut(bounds, rate)
        panel = bounds_panel(
            bounds, makespan=makespan, chosen=shown, hint=(known or {}).get("hint", "")
        )
        return {"bounds": panel, "cuts": cuts}

    @callback(
        app,
        output={
            "cut": Output(ids.CUT, "data"),
            "selection": Output(ids.CANVAS, "selection", allow_duplicate=True),
        },
        inputs={"clicks": Input({"bound": ALL}, "n_clicks")},
        state={
            "bound_aria_pressed": State({"bound": ALL}, "aria-pressed"),
            **states("known", "summary", "stale", "request"),
        },
    )
    def on_bound(
        clicks: list[int | None], known: Any, summary: Any, stale: Any, request: Any, **_: Any
    ) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        number = ctx.triggered_id["bound"]
        states = {row["id"]["bound"]: row.get("value") for row in ctx.states_list[0]}
        fresh = summary if not stale and same_question(summary, request) else None
        bounds = bounds_summary(known, fresh)
        path = bounds[number]["path"] if number < len(bounds) else None
        if path:
            return {"cut": None, "selection": {"devices": path, "links": [], "hosts": []}}
        return {"cut": (None if states.get(number) == "true" else number)}


def _charts(app: Dash) -> None:
    @callback(
        app,
        output={
            "load_figure": ui.figure(ids.LOAD),
            "load_box_hidden": Output(ids.LOAD_BOX, "hidden"),
            "load_top_children": Output(ids.LOAD_TOP, "children"),
            "load_all_children": Output(ids.LOAD_ALL, "children"),
            "load_all_style": Output(ids.LOAD_ALL, "style"),
        },
        inputs={**inputs("load", "scheme"), "clicks": Input(ids.LOAD_ALL, "n_clicks")},
        prevent_initial_call=False,
    )
    def on_load(load: Json | None, scheme: str | None, clicks: int | None) -> Json:
        if not load or not load["links"]:
            return {"load_box_hidden": True}
        links = len(load["links"])
        all_of_them = bool(clicks and clicks % 2)
        figure = link_load_figure(load, scheme, rows=MOST_ROWS if all_of_them else ROWS)
        label = f"First {ROWS}" if all_of_them else f"All {min(links, MOST_ROWS)}"
        return {
            "load_figure": figure,
            "load_box_hidden": False,
            "load_top_children": busiest_links(load),
            "load_all_children": label,
            "load_all_style": {} if links > ROWS else {"display": "none"},
        }
