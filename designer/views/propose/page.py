"""The Propose view: what is wanted at the left, the plot in the middle, ranked networks right."""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.serialization.topoloom import topology_from_json
from designer.shell import ids, ui
from designer.views.draw.thumbnails import picture
from designer.views.propose.running import ALONE, FIELDS, USES, Json, Standing
from designer.views.solve.forms import PERSISTED
from gallery.costs.bill import NOT_MODELLED
from widgets import QuantityField
from widgets.charts.proposals import RESPECTS

HOSTS = {
    ALONE: "GPUs that stand alone",
    "dgx-h100": "DGX H100, 8 GPUs",
    "dgx-a100": "DGX A100, 8 GPUs",
    "dgx-2": "DGX-2, 16 GPUs",
}
"""Types of hosts, by their names in the gallery."""

CARDS = 8
"""Networks that have a card."""

PICTURED = 300
"""GPUs up to which a card has a picture."""

EMPTY = (
    "Say how many GPUs and ports there are and what they are for. Known families, all lattices and "
    "networks rewired by chance are scored exactly, and those that none beats are drawn."
)

STAGES = {
    "closed": "tries known families",
    "lattices": "tries lattices",
    "products": "tries products of small networks",
    "rewiring": "rewires by chance",
    "prices": "rewires what is dear",
}
"""What a search does, by the stages of `formulations.proposals.search`."""

FIGURES = ("mix", "all-to-all", "all-gather", "all-reduce", "latency", "hops", "cables", "switches")
MONEY = ("dollars", "watts", "metres")
"""What a card tells, by names of `RESPECTS`; the second where prices are known."""


_NO_PRICES = html.P("They follow once networks are found.", className="ds-quiet")

UNRANKED = html.P(
    "Each network has a card here, with its picture, its figures and what they cost. One button "
    "makes it your drawing; ticks put several side by side.",
    className="ds-quiet",
)


def field_id(name: str) -> str:
    """Return the id of a field of `FIELDS`."""
    return f"propose-{name}"


def use_id(kind: str, part: str) -> str:
    """Return the id of the size or the times of a use."""
    return f"propose-use-{kind}-{part}"


def stores() -> list[Any]:
    """Return what the page keeps of a search; a reload finds it again by its key."""
    return [
        dcc.Store(id=ids.PROPOSE_JOB, storage_type="session"),
        dcc.Store(id=ids.PROPOSE_SEEN),
        dcc.Store(id=ids.PROPOSE_CHOSEN, data=""),
        dcc.Store(id=ids.PROPOSE_PARTS, data=[]),
        dcc.Store(id=ids.PROPOSE_SIZE),
        dcc.Store(id=ids.PROPOSE_BEAT),
        dcc.Store(id=ids.PROPOSE_BUSY, data=False),
        dcc.Interval(id=ids.PROPOSE_TICK, interval=400, disabled=True),
    ]


def pane() -> html.Div:
    """Return the whole view."""
    return ui.div("ds-pane ds-pro", _form(), _plot(), _ranked(), id=ids.PROPOSE_PANE)


def _form() -> html.Div:
    return ui.div(
        "ds-pro-form",
        _fields(),
        ui.div(
            "ds-pro-foot",
            html.Div(id=ids.PROPOSE_WRONG, role="alert"),
            ui.button("Propose", ids.PROPOSE_RUN, "play", size="sm", fullWidth=True),
            ui.button(
                "Stop",
                ids.PROPOSE_STOP,
                "stop",
                size="sm",
                variant="default",
                fullWidth=True,
                style={"display": "none"},
            ),
        ),
        role="group",
        aria_label="What is wanted",
    )


def _fields() -> html.Div:
    return ui.div(
        "ds-pro-fields",
        ui.heading("What is wanted"),
        *(_number(name) for name in ("gpus", "ports", "bandwidth")),
        ui.select(ids.PROPOSE_HOST, HOSTS, label="Hosts", value=ALONE, **PERSISTED),
        html.Div(id=ids.PROPOSE_HOST_WRONG, className="ds-pro-wrong", role="alert"),
        _number("radix"),
        ui.heading("What it is for"),
        _mix(),
        ui.fold(
            "More",
            *(_number(name) for name in ("alpha", "seconds")),
            dmc.Checkbox(
                id=ids.PROPOSE_ONE_WAY,
                label="Links may go one way",
                description="which takes split fibres",
                checked=False,
                size="xs",
            ),
            look="ds-fold ds-pro-more",
        ),
        ui.fold(
            "Prices of parts",
            html.Div(_NO_PRICES, id=ids.PROPOSE_PRICES, className="ds-pro-prices"),
            look="ds-fold ds-pro-more",
        ),
    )


def _number(name: str) -> Any:
    each = FIELDS[name]
    return QuantityField(
        id=field_id(name),
        label=each.label,
        what=each.label.lower(),
        kind=each.kind,
        value=each.value,
        least=each.least,
        **({} if each.most is None else {"most": each.most}),
        optional=name == "radix",
        placeholder="none" if name == "radix" else "",
        title=each.note,
        size="xs",
        **PERSISTED,
    )


def _mix() -> html.Div:
    rows = []
    for kind, (label, size, times) in USES.items():
        numbers = {"size": "xs", "debounce": 300, **PERSISTED}
        rows += [
            html.Span(label, className="ds-pro-use"),
            QuantityField(
                id=use_id(kind, "times"),
                kind="number",
                what=f"times of {label.lower()}",
                value=times,
                least=0,
                ariaLabel=f"How often: {label}",
                **numbers,
            ),
            html.Span("×", className="ds-pro-by"),
            QuantityField(
                id=use_id(kind, "size"),
                kind="size",
                what=f"size of {label.lower()}",
                value=size,
                verbatim=True,
                above=0,
                ariaLabel=f"Size: {label}",
                **numbers,
            ),
        ]
    return ui.div("ds-pro-mix", *rows)


def prices(parts: Mapping[str, Json], own: Mapping[str, float]) -> list[Any]:
    """Return a field for the price of each part; what is typed moves the front.

    Parameters
    ----------
    parts
        By name.
    own
        Prices that the user has typed.
    """
    rows = [
        QuantityField(
            id={"propose-price": name},
            kind="number",
            what=f"the price of {part['title']}",
            label=f"{part['title']}, $ {'per m' if part['unit'] == 'm' else 'each'}",
            title="low {:,.0f}, high {:,.0f}".format(part["dollars"][0], part["dollars"][2]),
            value=own.get(name, part["dollars"][1]),
            least=0,
            debounce=300,
            size="xs",
        )
        for name, part in sorted(parts.items())
    ]
    note = (
        "Typical prices since August 2024, many assumed; put yours in. Of switches and cables: "
        "GPUs, hosts and their network cards cost the same for all. "
        f"{text.sentence(NOT_MODELLED)}"
    )
    return [html.P(note, className="ds-quiet"), *rows] if rows else [_NO_PRICES]


def _plot() -> html.Div:
    choices = {name: each.title for name, each in RESPECTS.items()}
    return ui.div(
        "ds-pro-middle",
        ui.div(
            "ds-pro-head",
            ui.div("ds-pro-status", status(None), id=ids.PROPOSE_STATUS),
            ui.div(
                "ds-row",
                ui.select(ids.PROPOSE_UP, choices, value="mix", aria_label="Up", **PERSISTED),
                html.Span("over", className="ds-pro-by"),
                ui.select(
                    ids.PROPOSE_ACROSS, choices, value="dollars", aria_label="Across", **PERSISTED
                ),
                _exports(),
            ),
        ),
        ui.div(
            "ds-pro-found",
            empty(),
            ui.graph(ids.PROPOSE_PLOT, style={"height": "100%"}, className="ds-pro-graph"),
            id=ids.PROPOSE_FOUND,
            data_empty=True,
        ),
    )


def _exports() -> dmc.Menu:
    target = ui.button(
        "Export",
        ids.PROPOSE_EXPORT,
        "download",
        variant="default",
        size="compact-sm",
        disabled=True,
    )
    entries = (
        ("csv", "table", "Table as CSV", "one row per network"),
        ("json", "file", "Study as JSON", "what was wanted, every network and its drawing"),
    )
    return ui.menu(
        target, [ui.menu_entry({"propose-export": kind}, *told) for kind, *told in entries]
    )


def _ranked() -> html.Div:
    return ui.div(
        "ds-pro-right",
        ui.heading("Networks, the best first"),
        ui.div(
            "ds-pro-list",
            html.Div(id=ids.PROPOSE_BESIDE),
            html.Div(UNRANKED, id=ids.PROPOSE_CARDS, className="ds-pro-cards"),
            tabIndex=0,
            role="region",
            aria_label="Networks",
        ),
    )


def empty() -> html.Div:
    """Say what this view is for, where nothing was looked for yet."""
    return ui.div(
        "ds-cmp-empty",
        ui.icon("search"),
        html.B("From GPUs and ports to drawings"),
        html.Span(EMPTY),
    )


def status(stands: Standing | None) -> Any:
    """Say how far a search is."""
    if stands is None:
        return ui.heading("Networks")
    found = stands.found
    if stands.trouble:
        return ui.banner("warning", "bad", text.sentence(stands.trouble))
    many = text.count(len(stands.networks), "network")
    if found.running:
        doing = STAGES.get(stands.front.get("stage", ""), "starts")
        if found.waiting:
            doing = f"waits, {text.ordinal(found.waiting)} in line"
        words = f"{many} in {text.seconds(found.seconds)}"
        return ui.div(
            "ds-cmp-line", dmc.Loader(size=12), html.Span(words, role="status"), html.Small(doing)
        )
    ended = "Stopped" if found.cancelled else "Finished"
    seconds = stands.front.get("seconds", found.seconds)
    words = f"{ended}: {many} in {text.seconds(seconds)}"
    left, missing = stands.front.get("left_out", 0), stands.front.get("not_tried", "")
    more = f"{left} more could not be scored exactly in time" if left else ""
    line = (ui.icon("check"), html.Span(words, role="status"), html.Small(more, title=more))
    note = ui.div("ds-note", text.sentence(f"not tried: {missing}")) if missing else None
    return html.Div([ui.div("ds-cmp-line", *line), note])


def cards(
    stands: Standing, *, best: Sequence[str], ticked: Sequence[str], chosen: str
) -> list[Any]:
    """Return a card for each of the best networks, those that none beats first in line.

    Parameters
    ----------
    stands
        The search.
    best
        Keys of those that none is better than in both respects of the plot.
    ticked, chosen
        Keys of those that stand side by side, and of the one that is looked at.
    """
    order = list(stands.networks)
    shown = order[:CARDS]
    shown += [key for key in (*best, chosen) if key in stands.networks and key not in shown]
    return [
        _card(stands, key, order.index(key) + 1, marks=(key in best, key in ticked, key == chosen))
        for key in sorted(shown, key=order.index)
    ]


def _card(stands: Standing, key: str, place: int, *, marks: tuple[bool, bool, bool]) -> html.Div:
    each, (best, ticked, chosen) = stands.networks[key], marks
    values = each["values"]
    told = [name for name in (*FIGURES, *MONEY) if values.get(name) is not None]
    rows = [
        html.Div([html.Dt(RESPECTS[name].title), html.Dd(_figure(each, name, stands.front))])
        for name in told
    ]
    head = [
        html.B(f"{place}. {each['name']}"),
        html.Small("no other is better in both respects" if best else ""),
    ]
    return ui.div(
        "ds-pro-card",
        ui.div("ds-pro-title", _picture(each), html.Div(head)),
        html.P(stands.front.get("why", {}).get(key, ""), className="ds-pro-why"),
        html.Dl(rows, className="ds-pro-figures"),
        ui.div(
            "ds-row ds-pro-next",
            ui.button(
                "Open on the canvas", {"propose-open": key}, size="compact-sm", variant="light"
            ),
            dmc.Checkbox(
                id={"propose-pick": key},
                label="Side by side",
                checked=ticked,
                size="xs",
                **ui.attributes(aria_label=f"Side by side: {each['name']}"),
            ),
        ),
        data_chosen=chosen,
        id={"propose-card": key},
    )


def _figure(each: Mapping[str, Any], name: str, front: Json) -> str:
    """Write a figure, and how far it is above what no network can be below."""
    value = each["values"][name]
    bound = front.get("bounds", {}).get(name)
    words = RESPECTS[name].write(value)
    if name in each.get("spans", {}):
        low, high = map(RESPECTS[name].write, each["spans"][name])
        words += f" ({low} to {high})"
    if bound and value > bound * (1 + 1e-4):
        words += f", {text.share(value / bound - 1)} above the bound"
    elif bound:
        words += ", at the bound"
    return words


def _picture(each: Mapping[str, Any]) -> Any:
    drawing = each["drawing"]
    gpus = sum(device["kind"] == "gpu" for device in drawing["topology"]["devices"])
    if gpus > PICTURED:
        return html.Span(className="ds-pro-picture")
    return ui.div(
        "ds-pro-picture", picture(topology_from_json(drawing["topology"]), drawing["positions"])
    )


def sizes(stands: Standing) -> Any:
    """Say which sizes the times of cards and tables are for; a study of before does not tell."""
    if not stands.front.get("mix"):
        return None
    uses = [
        f"{times:g} × {'short messages' if kind == 'latency' else kind} of {text.size(size)}"
        for kind, size, times in stands.front["mix"]
    ]
    words = f"The mix is {text.enumerate_words(uses)}, one after another."
    alone = "Times per GB are of one collective alone, latencies aside."
    return html.P(f"{words} {alone}", className="ds-note ds-pro-sizes")


def beside(stands: Standing, ticked: Sequence[str]) -> Any:
    """Return two networks side by side, with what differs."""
    pair = [stands.networks[key] for key in ticked if key in stands.networks][:2]
    if len(pair) < 2:
        return None
    rows = []
    for name in (*FIGURES, *MONEY):
        here, there = (each["values"].get(name) for each in pair)
        if here is None or there is None:
            continue
        write = RESPECTS[name].write
        ratio = f"{text.digits(there / here)}×" if here else ""
        cells = [html.Td(write(here)), html.Td(write(there)), html.Td(ratio)]
        rows.append(html.Tr([html.Th(RESPECTS[name].title, scope="row"), *cells]))
    heads = ["", *(each["name"] for each in pair), "Second ÷ first"]
    return ui.table("Two networks side by side", "ds-wif-table ds-pro-beside", heads, rows)
