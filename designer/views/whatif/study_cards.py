"""Cards of studies: what to buy, what may fail, what may lag.

They run and stop a study, say how far it is and show what it has found: of losses and stragglers a
row for each class, the worst first; of a budget what bandwidth costs, what is to be reached and
what to buy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.topology import Topology
from designer.shell import ids, ui
from designer.studies import Found
from designer.views.whatif.knobs import Knob
from widgets import QuantityField

OLD = "Out of date: the cluster or the request has changed. Run it again."
STUDIES = ("failures", "stragglers", "budget")


def part(study: str, name: str) -> str:
    """Return the id of a part of a study's card."""
    return f"whatif-{study}-{name}"


def stores() -> list[Any]:
    """Return what the page keeps of studies."""
    return [
        each
        for study in STUDIES
        for each in (
            dcc.Store(id=part(study, "job"), storage_type="session"),
            dcc.Store(id=part(study, "beat")),
            dcc.Store(id=part(study, "busy"), data=False),
            dcc.Store(id=part(study, "seen")),
            dcc.Interval(id=part(study, "tick"), interval=300, disabled=True),
        )
    ]


def controls(study: str, label: str) -> html.Div:
    """Return the two buttons of which one is shown, and how far it is."""
    run = ui.button(label, part(study, "run"), "play", size="xs", variant="default")
    stop = ui.button(
        "Stop", part(study, "stop"), "stop", size="xs", variant="default", style={"display": "none"}
    )
    told = html.Div(id=part(study, "status"), className="ds-wif-progress", role="status")
    old = html.Div(
        ui.banner("clock", "plain", OLD), id=part(study, "old"), hidden=True, role="status"
    )
    return ui.div("ds-wif-run", run, stop, told, old)


def status(found: Found | None, *, doing: str) -> Any:
    """Say how far a study is.

    Parameters
    ----------
    found
        What there is so far.
    doing
        What it does, for a study that has no rows to count.
    """
    if found is None:
        return None
    error = found.last("error")
    if error:
        return ui.banner("warning", "bad", text.sentence(error))
    of, rows = found.last("of"), len(rows_of(found))
    if found.waiting:
        return [dmc.Loader(size=12), html.Span(f"waits for {text.count(found.waiting, 'turn')}")]
    if found.running:
        words = f"{rows} of {of}" if of else doing
        return [dmc.Loader(size=12), html.Span(words)]
    if found.cancelled:
        return html.Span(f"stopped: {rows} of {of}" if of else "stopped")
    return [ui.icon("check"), html.Span(f"{text.seconds(found.seconds)}")]


MOST_ROWS = 40
"""Rows that are shown; more are counted."""
FEWER = "Not comparable: fewer GPUs are left, so times and rates are those of another task."
LABELS = {"failures": "Lost", "stragglers": "Lags"}


def failure_cards() -> list[html.Section]:
    """Return both cards before anything is known."""
    return [
        ui.headed(
            "If one fails",
            html.P(
                "What every single loss costs: one of the links, GPUs, switches, NICs and hosts "
                "that can change places.",
                className="ds-quiet",
            ),
            controls("failures", "Lose each"),
            html.Div(id=part("failures", "found")),
            className="ds-wif-card",
        ),
        ui.headed(
            "If one lags",
            _factors(),
            controls("stragglers", "Slow each"),
            html.Div(id=part("stragglers", "found")),
            className="ds-wif-card",
        ),
    ]


def _factors() -> html.Div:
    """Return the two sliders: by how much what lags is slower."""
    return ui.div(
        "ds-wif-form",
        [
            ui.div(
                "ds-wif-row",
                html.Span(label, className="ds-wif-label", **ui.attributes(aria_hidden="true")),
                dmc.Slider(
                    id=key,
                    value=value,
                    min=1,
                    max=10,
                    step=0.5,
                    label={"function": "whatifTimes"},
                    marks=[{"value": each} for each in (1, 5, 10)],
                    size=4,
                    thumbSize=16,
                    thumbLabel=title,
                ),
                html.Span(id=f"{key}-words", className="ds-wif-times"),
            )
            for key, label, title, value in (
                (ids.WHATIF_LAG_ALPHA, "Alpha", "Times the alpha of what lags", 1),
                (ids.WHATIF_LAG_BETA, "Beta", "Times as long for each byte of what lags", 2),
            )
        ],
    )


def rows_of(found: Found) -> list[dict[str, Any]]:
    """Return all rows that a study has found so far, those that cost most first."""
    rows = [each["row"] for each in found.events if "row" in each]
    return sorted(rows, key=lambda r: (not r["ends"], -len(r["cut_off"]), -r["lost"]))


def identity(row: Json) -> str:
    """Return what tells a row from the others."""
    return "/".join([row["kind"], *row["names"]])


def table(study: str, found: Found | None, picked: str) -> Any:
    """Return the rows so far.

    Parameters
    ----------
    study
        ``failures`` or ``stragglers``.
    found
        What there is.
    picked
        Identity of the row that is drawn, or nothing.
    """
    rows = [] if found is None else rows_of(found)
    if found is None or not rows:
        return None
    more = len(rows) - MOST_ROWS
    words = found.last("words")
    return [
        html.P(words, className="ds-wif-worst") if words else None,
        ui.table(
            "Losses, the worst first",
            "ds-wif-table ds-wif-losses",
            [LABELS[study], "costs", "leaves", html.Span("Open", className="ds-unseen")],
            [_row(study, row, picked) for row in rows[:MOST_ROWS]],
        ),
        html.Small(f"and {more} more that cost no more", className="ds-note") if more > 0 else None,
        html.P(FEWER, className="ds-quiet") if any(map(_gained, rows)) else None,
    ]


def _row(study: str, row: Json, picked: str) -> html.Tr:
    name = identity(row)
    draws = ui.press(
        [html.Span(" – ".join(row["names"])), html.Small(_kind(row))],
        {"whatif-loss": name, "of": study},
        "ds-wif-class ds-wif-loss",
        title=f"Draw it: {row['words']}",
        aria_pressed=name == picked,
    )
    opens = ui.press(
        ui.icon("open"),
        {"whatif-open": name, "of": study},
        "ds-wif-open",
        title="Open this cluster in the drawing",
        aria_label=f"Open the cluster: {row['words']}",
    )
    return html.Tr(
        [
            html.Th(draws, scope="row"),
            html.Td(_failing_card_cost(row)),
            html.Td(text.bandwidth(row["algbw"]) if row["algbw"] else "nothing"),
            html.Td(opens),
        ]
    )


def _kind(row: Json) -> str:
    """Say what it is, without its name: ``a link (NVLink 3 at 300 GB/s), 16 alike``."""
    name = " – ".join(row["names"])
    words = str(row["words"]).partition(", such as")[0].removesuffix(name).rstrip(" ,")
    return f"{words}, {row['alike']:,} alike" if row["alike"] > 1 else words


def _failing_card_cost(row: Json) -> Any:
    if row["ends"]:
        return html.B("all of it", className="ds-wif-ends")
    if row["cut_off"]:
        return html.B(f"cuts off {len(row['cut_off'])}", className="ds-wif-ends")
    share = row["lost"]
    if abs(share) < _NOTHING:
        return "nothing"
    bar = html.Span(html.I(style={"width": f"{max(share, 0):.1%}"}), className="ds-track")
    return "not comparable" if _gained(row) else [text.share(share), bar]


def _gained(row: Json) -> bool:
    """Whether the rate is higher: only fewer GPUs, which have less to send, can bring that."""
    return not row["ends"] and not row["cut_off"] and row["lost"] < -_NOTHING


_NOTHING = 5e-6


def marks(study: str, row: Json, hosts: Mapping[str, str | None]) -> Json:
    """Return what is drawn of a row: what is lost or lags, and in pale what is like it.

    Parameters
    ----------
    study
        ``failures`` or ``stragglers``.
    row
        Of the study.
    hosts
        Host of each device.
    """
    alike = [each for each in row["members"] if each != row["names"]]
    groups = [
        _group(
            row["kind"],
            [row["names"]],
            hosts,
            heat=1.0,
            label=f"{LABELS[study]}: {' – '.join(row['names'])}",
        )
    ]
    groups[0]["badge"] = "×" if study == "failures" else "!"
    if alike:
        label = f"{len(alike):,} alike"
        groups.append(_group(row["kind"], alike, hosts, heat=0.3, label=label))
    return {"title": f"{LABELS[study]}: {row['words']}", "groups": groups}


def _group(
    kind: str, members: list[list[str]], hosts: Mapping[str, str | None], *, heat: float, label: str
) -> dict[str, Any]:
    links = (
        [list(ends) for pair in members for ends in (pair, pair[::-1])] if kind == "link" else []
    )
    names = {name for each in members for name in each}
    if kind == "host":
        devices = [device for device, host in hosts.items() if host in names]
    else:
        devices = [] if kind == "link" else sorted(names)
    return {"tone": {"heat": heat}, "devices": devices, "links": links, "label": label}


Json = Mapping[str, Any]

USUAL_COST = 1
"""Of a GB/s: with one for all, what counts is how much bandwidth is added."""
TARGET = "1.5x"
UNIT = "GB/s"
"""The currency while nobody has set a cost: what they count is bandwidth."""


def budget_card() -> html.Section:
    """Return the card before anything is known."""
    return ui.headed(
        "What to buy",
        html.P("Counted from the cluster as the sliders stand.", className="ds-quiet"),
        html.Div(id=ids.WHATIF_COSTS, className="ds-wif-costs"),
        _asked(),
        controls("budget", "Find the cheapest"),
        html.Div(id=part("budget", "found")),
        html.Div(
            ui.graph(ids.WHATIF_FRONT, style={"height": 190}), id=ids.WHATIF_FRONT_BOX, hidden=True
        ),
        className="ds-wif-card",
    )


def _asked() -> html.Div:
    """Return what is to be reached, and for which collectives at once."""
    return ui.div(
        "ds-pair",
        QuantityField(
            id=ids.WHATIF_TARGET,
            kind="bandwidth",
            factors=True,
            what="what is to be reached",
            above=0,
            label="Reach",
            value=TARGET,
            verbatim=True,
            placeholder="1.5x or 300 GB/s",
            description="times the best rate now, or GB/s",
        ),
        dmc.MultiSelect(
            id=ids.WHATIF_COLLECTIVES,
            label="For all of",
            data=ui.options(ui.COLLECTIVE_LABELS),
            value=[],
            placeholder="the collective above",
            description="at the size of the sliders",
            size="xs",
        ),
    )


def costs_form(knobs: Sequence[Knob], topology: Topology) -> Any:
    """Return the table of costs: a GB/s of each class, and each kind of devices."""
    kinds = dict.fromkeys(each.kind for each in topology.devices)
    per = "per GB/s added, both directions"
    often = Counter(each.title for each in knobs)
    rows = []
    for each in knobs:
        drawn = f", drawn with {text.bandwidth(each.bandwidth)}"
        title = f"{each.title}{drawn if often[each.title] > 1 else ''}"
        rows.append(_cost({"whatif-cost": each.key}, title, per, USUAL_COST))
    rows += [
        _cost({"whatif-device": kind}, _NOUNS.get(kind, kind), "a device", 0) for kind in kinds
    ]
    return ui.table("Costs", "ds-wif-table", ["Costs", "each"], rows)


_NOUNS = {"gpu": "GPU", "nic": "NIC", "switch": "Switch", "memory": "Memory"}


def _cost(key: dict[str, str], title: str, of: str, value: float) -> html.Tr:
    field = QuantityField(
        id=key,
        kind="number",
        what=f"cost of {title}",
        value=value,
        least=0,
        optional=True,
        placeholder="not for sale",
        ariaLabel=f"Cost of {title}, {of}",
        className="ds-floating ds-leftward",
    )
    return html.Tr([html.Th([title, html.Small(of)], scope="row"), html.Td(field)])


def costs_of(
    knobs: Sequence[Knob],
    topology: Topology,
    *,
    links: Mapping[str, float | None],
    devices: Mapping[str, float | None],
) -> dict[str, Any]:
    """Return the costs as `formulations.analyses.expansion.costs.read_costs` takes them.

    Parameters
    ----------
    knobs, topology
        The classes, and the cluster as the sliders stand.
    links
        Cost of a GB/s by key of a class; what has none is not for sale.
    devices
        Cost of a device by kind.
    """
    prices: list[dict[str, Any]] = []
    for knob in knobs:
        cost = links.get(knob.key)
        if not cost:
            continue
        if knob.limits:
            prices.append({"cost": cost, "limits": list(knob.limits)})
            continue
        kinds = {topology.link(*ends) for ends in knob.links}
        prices += [
            {"cost": cost, "medium": medium, "bandwidth": rate}
            for medium, rate in sorted({(each.medium, each.bandwidth) for each in kinds})
        ]
    # A name that begins with another one's comes first, since the first line that fits counts.
    prices.sort(key=lambda each: -len(each.get("medium") or ""))
    even = set(links.values()) == {USUAL_COST} and not any(devices.values())
    given = {kind: cost for kind, cost in devices.items() if cost}
    return {"currency": UNIT if even else "", "links": prices, "devices": given}


def bought(found: Found | None) -> Any:
    """Return what to buy, what it costs and what it gives."""
    upgrade = None if found is None else found.last("upgrade")
    if upgrade is None:
        return None
    if not upgrade["bought"]:
        words = "Nothing has to be bought: as the sliders stand it is fast enough."
        return html.P(words, className="ds-wif-worst")
    per = " (1 per GB/s)" if upgrade["currency"] == UNIT else ""
    proved = "; nothing cheaper is enough" if upgrade["proved"] else ""
    today = found.last("today") if found else None
    share = f", {text.share(upgrade['cost'] / today)} of what is there now" if today else ""
    return [
        html.P(
            ["Cost ", html.B(text.digits(upgrade["cost"])), f"{per}{share}{proved}:"],
            className="ds-wif-worst",
        ),
        html.Ul([html.Li(_bought(each)) for each in upgrade["bought"]], className="ds-wif-list"),
        html.Ul([html.Li(_gain(each)) for each in upgrade["gains"]], className="ds-wif-list"),
        ui.button(
            "Apply this purchase", {"whatif-buy": 0}, "check", size="compact-sm", variant="default"
        ),
    ]


def _bought(change: Json) -> list[Any]:
    many = text.count(change["count"], "limit" if change["limits"] else "link")
    more = f"{text.digits(change['before'])} → {text.bandwidth(change['after'])}"
    cost = text.digits(change["cost"])
    return [html.B(change["words"]), f": {more} on each of {many}, cost {cost}"]


def _gain(gain: Json) -> list[Any]:
    label = ui.COLLECTIVE_LABELS.get(gain["collective"], gain["collective"])
    share = text.digits(gain["after"] / gain["before"])
    held = f"; then {gain['held'][0]} holds it down" if gain["held"] else ""
    return [
        html.B(label),
        f": {text.bandwidth(gain['before'])} → {text.bandwidth(gain['after'])}, {share}×{held}",
    ]
