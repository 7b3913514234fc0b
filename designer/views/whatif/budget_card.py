"""The card of a budget: what bandwidth costs, what is to be reached, and what to buy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from ccl import text
from ccl.topology import Topology
from designer.shell import ids
from designer.shell.markup import CONFIG, attributes, heading, icon
from designer.shell.presets import COLLECTIVE_LABELS
from designer.views.whatif.failing_card import controls, part
from designer.views.whatif.knobs import Knob
from designer.views.whatif.running import Found
from widgets import QuantityField

Json = Mapping[str, Any]

USUAL_COST = 1
"""Of a GB/s: with one for all, what counts is how much bandwidth is added."""
TARGET = "1.5x"
UNIT = "GB/s"
"""Of costs while nobody has set any: what they count is bandwidth."""


def budget_card() -> html.Section:
    """Return the card before anything is known."""
    return html.Section(
        [
            heading("What to buy"),
            html.Div(id=ids.WHATIF_COSTS, className="ds-wif-costs"),
            _asked(),
            controls("budget", "Find the cheapest"),
            html.Div(id=part("budget", "found")),
            html.Div(
                dcc.Graph(
                    id=ids.WHATIF_FRONT, config=CONFIG, responsive=True, style={"height": 190}
                ),
                id=ids.WHATIF_FRONT_BOX,
                hidden=True,
            ),
        ],
        className="ds-wif-card",
        **attributes(aria_label="What to buy"),
    )


def _asked() -> html.Div:
    """Return what is to be reached, and for which collectives at once."""
    return html.Div(
        [
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
                description="times today's rate, or GB/s",
            ),
            dmc.MultiSelect(
                id=ids.WHATIF_COLLECTIVES,
                label="For all of",
                data=[{"value": key, "label": label} for key, label in COLLECTIVE_LABELS.items()],
                value=[],
                placeholder="what is asked above",
                description="at the size of the sliders",
                size="xs",
            ),
        ],
        className="ds-pair",
    )


def costs_form(knobs: Sequence[Knob], topology: Topology) -> Any:
    """Return the table of costs: a GB/s of each class, and each kind of devices."""
    kinds = dict.fromkeys(each.kind for each in topology.devices)
    return html.Table(
        [
            html.Caption("Costs", className="ds-unseen"),
            html.Thead(html.Tr([html.Th("Costs", scope="col"), html.Th("each", scope="col")])),
            html.Tbody(
                [
                    *(
                        _cost(
                            {"whatif-cost": each.key},
                            f"{each.title} at {each.bandwidth:g} GB/s",
                            "a GB/s more, both ways",
                            USUAL_COST,
                        )
                        for each in knobs
                    ),
                    *(
                        _cost({"whatif-device": kind}, _NOUNS.get(kind, kind), "a device", 0)
                        for kind in kinds
                    ),
                ]
            ),
        ],
        className="ds-wif-table",
    )


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
    unit = f" {upgrade['currency']}" if upgrade["currency"] else ""
    if not upgrade["bought"]:
        return html.P(
            "Nothing has to be bought: today's cluster is fast enough.", className="ds-wif-worst"
        )
    proved = "; nothing cheaper is enough" if upgrade["proved"] else ""
    today = found.last("today") if found else None
    share = f", {text.share(upgrade['cost'] / today)} of what is there" if today else ""
    return [
        html.P(
            ["Buy for ", html.B(f"{text.digits(upgrade['cost'])}{unit}"), f"{share}{proved}:"],
            className="ds-wif-worst",
        ),
        html.Ul(
            [html.Li(_bought(each, unit)) for each in upgrade["bought"]], className="ds-wif-list"
        ),
        html.Ul([html.Li(_gain(each)) for each in upgrade["gains"]], className="ds-wif-list"),
        dmc.Button(
            "Apply to the drawing",
            id={"whatif-buy": 0},
            leftSection=icon("check"),
            size="compact-sm",
            variant="default",
        ),
    ]


def _bought(change: Json, unit: str) -> list[Any]:
    many = text.count(change["count"], "limit" if change["limits"] else "link")
    more = f"{text.digits(change['before'])} → {text.bandwidth(change['after'])}"
    cost = f"{text.digits(change['cost'])}{unit}"
    return [html.B(change["words"]), f": {more} on each of {many}, {cost}"]


def _gain(gain: Json) -> list[Any]:
    label = COLLECTIVE_LABELS.get(gain["collective"], gain["collective"])
    share = text.digits(gain["after"] / gain["before"])
    held = f"; then {gain['held'][0]} holds it down" if gain["held"] else ""
    return [
        html.B(label),
        f": {text.bandwidth(gain['before'])} → {text.bandwidth(gain['after'])}, {share}×{held}",
    ]
