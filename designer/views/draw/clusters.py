"""The gallery in the palette: a picture of every cluster, its parameters, and opening one.

Ready clusters: the list, the dialog, and a fresh drawing.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

import dash_mantine_components as dmc
from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, html, set_props

from ccl import text
from ccl.errors import CclError
from ccl.layout import layout
from ccl.topology import Link, Topology
from designer.shell import ids, request, ui
from designer.shell.request import Json, callback
from designer.views.draw.files import drawing_of
from gallery import Entry, Parameter, catalog, entry, open_cluster
from widgets import QuantityField

LINES = 160
"""Lines of a thumbnail; in 36 pixels more are a blot."""


def matching(search: str | None) -> list[Entry]:
    """Return the entries that have every word searched for, those called so before the others."""
    words = (search or "").lower().split()

    def has_all(told: str) -> bool:
        return all(word in told.lower() for word in words)

    found = [
        each
        for each in catalog()
        if has_all(f"{each.name} {each.title} {each.family} {each.summary}")
    ]
    return sorted(found, key=lambda each: not has_all(f"{each.name} {each.title}"))


def cluster_list(search: str | None) -> list[Any]:
    """Return a button for each entry that matches, family by family."""
    found = matching(search)
    if not found:
        return [html.P(f"No cluster matches “{search}”.", className="ds-quiet")]
    return [_button(each) for each in found]


def _button(found: Entry) -> html.Button:
    return ui.press(
        [
            html.I(className="ds-thumb", style={"--thumb": f'url("{thumbnail(found.name)}")'}),
            html.Span([found.title, html.Small(counted(found.make()))]),
        ],
        {"cluster": found.name},
        "ds-cluster",
        title=found.summary,
    )


def counted(topology: Topology) -> str:
    """Say what a topology has, such as ``16 GPUs · 4 switches · 20 links``."""
    kinds = [each.kind for each in topology.devices]
    switches = kinds.count("switch")
    parts = [text.count(kinds.count("gpu"), "GPU")]
    if switches:
        parts.append(text.count(switches, "switch", "switches"))
    parts.append(text.count(drawn_links(topology), "link"))
    return " · ".join(parts)


def drawn_links(topology: Topology) -> int:
    """Return how many links are drawn: those of both directions between two devices are one."""
    return len({tuple(sorted(each.ends)) for each in topology.links})


@cache
def thumbnail(name: str) -> str:
    """Return a data address with the picture of the entry's usual cluster, as a mask."""
    topology = entry(name).make()
    places = scaled(topology, layout(topology), (36.0, 36.0), margin=4.0)
    radius = max(0.7, min(2.4, 7 / math.sqrt(len(places))))
    dots = "".join(
        "<circle cx='{:.1f}' cy='{:.1f}' r='{:.1f}'/>".format(
            *places[each.name], radius * (1 if each.kind == "gpu" else 0.7)
        )
        for each in topology.devices
    )
    lines = lines_between(topology.links, places, most=LINES)
    look = "stroke='#000' stroke-opacity='.45' stroke-width='.8'"
    return mask(f"<g {look}>{lines}</g><g>{dots}</g>", (36.0, 36.0))


Size = tuple[float, float]


def scaled(
    topology: Topology, places: Mapping[str, Size], size: Size, *, margin: float
) -> dict[str, Size]:
    """Return where devices stand in a picture of a size, as large as fits and in its middle."""
    xs, ys = [x for x, _ in places.values()], [y for _, y in places.values()]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    by = min((size[0] - 2 * margin) / max(wide, 1.0), (size[1] - 2 * margin) / max(high, 1.0))
    left, top = (size[0] - wide * by) / 2, (size[1] - high * by) / 2
    return {
        each.name: (
            left + (places[each.name][0] - min(xs)) * by,
            top + (places[each.name][1] - min(ys)) * by,
        )
        for each in topology.devices
    }


def lines_between(links: Iterable[Link], places: Mapping[str, Size], *, most: int) -> str:
    """Return paths of SVG for linked pairs, every so many where there are more than `most`."""
    pairs = sorted({(min(each.ends), max(each.ends)) for each in links})
    every = max(1, -(-len(pairs) // most))
    return "".join(
        "<path d='M{:.1f} {:.1f}L{:.1f} {:.1f}'/>".format(*places[a], *places[b])
        for a, b in pairs[::every]
    )


def mask(shapes: str, size: Size) -> str:
    """Return a data address with shapes of SVG, to be coloured by what lies behind."""
    box = f"viewBox='0 0 {size[0]:g} {size[1]:g}'"
    picture = f"<svg xmlns='http://www.w3.org/2000/svg' {box}>{shapes}</svg>"
    return "data:image/svg+xml," + quote(picture, safe="/:= '")


def cluster_form(name: str) -> list[Any]:
    """Return what the dialog shows of an entry: its story and a row per parameter."""
    found = entry(name)
    return [
        dmc.Text(found.title, fw=640),
        dmc.Text(found.summary, size="sm", c="dimmed", mb="sm"),
        ui.div(
            "ds-parameters",
            [_field(each) for each in sorted(found.parameters, key=lambda one: one.kind == "bool")],
        ),
        _figures(found),
    ]


def _field(parameter: Parameter) -> Any:
    label = parameter.name.replace("_", " ").capitalize()
    props: Json = {
        "id": {"parameter": parameter.name},
        "label": label,
        "description": parameter.meaning,
        "size": "sm",
    }
    if parameter.kind == "bool":
        return dmc.Switch(checked=bool(parameter.default), className="ds-wide", **props)
    if parameter.kind == "choice":
        return dmc.Select(
            data=list(parameter.choices), value=parameter.default, allowDeselect=False, **props
        )
    if parameter.kind == "shape":
        return dmc.TextInput(value="x".join(str(each) for each in parameter.default), **props)
    kind = "count" if parameter.kind == "int" else "number"
    # The value follows while it is typed, so that nothing moves under a press of Open.
    return QuantityField(
        value=parameter.default, kind=kind, what=label, least=0, debounce=300, **props
    )


def _figures(found: Entry) -> Any:
    rows = [
        html.Li([f"{each.what}: ", html.B(each.value), f" ({each.standing})"])
        for each in found.figures
    ]
    return ui.div("ds-facts ds-story", html.Ul(rows), html.Div(["Source: ", found.source]))


def opened(name: str, values: Mapping[str, Any]) -> Topology:
    """Make a cluster from the values of its form.

    Raises
    ------
    ProblemError
        If a value is not one that the parameter takes.
    """
    given = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}"
        for key, value in values.items()
    )
    return open_cluster(f"{name}:{given}" if given else name)


EMPTY: Json = {
    "topology": {"name": "untitled", "devices": [], "links": [], "limits": []},
    "positions": {},
}


def refused(name: str, sentence: str) -> Json:
    """Say why a cluster cannot be made, beside the field of the parameter that it begins with."""
    words = sentence.removeprefix(f"{name}: ")
    for each in entry(name).parameters:
        if words.startswith((f"{each.name} ", f"{each.name}=")):
            own = each.kind in {"bool", "choice", "shape"}  # the others are quantities
            said = {"error": text.sentence(sentence)} if own else {"trouble": sentence}
            set_props({"parameter": each.name}, said)
            return {}
    return {"notes": ui.note(sentence)}


def register(app: Dash) -> None:
    """Wire the gallery."""

    @app.callback(
        Output(ids.GALLERY_LIST, "children"),
        Input(ids.GALLERY_SEARCH, "value"),
        prevent_initial_call=False,
    )
    def on_search(words: str | None) -> Any:
        return cluster_list(words)

    @callback(
        app,
        output={
            "gallery_dialog_opened": Output(ids.GALLERY_DIALOG, "opened"),
            "gallery_form": Output(ids.GALLERY_FORM, "children"),
            "gallery_open_name": Output(ids.GALLERY_OPEN, "name"),
        },
        inputs={"clicks": Input({"cluster": ALL}, "n_clicks")},
    )
    def on_cluster(clicks: list[int | None]) -> Json:
        if not any(clicks) or not ctx.triggered_id:
            return {}
        name = ctx.triggered_id["cluster"]
        return {
            "gallery_dialog_opened": True,
            "gallery_form": cluster_form(name),
            "gallery_open_name": name,
        }

    _unmark(app)
    _open(app)


def _unmark(app: Dash) -> None:
    """Wire a field that is changed, which says no more why it was refused."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "unmark"), Input({"parameter": ALL}, "value")
    )


def _open(app: Dash) -> None:
    """Wire the clusters that are opened, and the drawing that is begun anew."""

    @callback(
        app,
        output={
            **request.changes("drawing", "command", "other", "notes"),
            "gallery_dialog_opened": Output(ids.GALLERY_DIALOG, "opened", allow_duplicate=True),
        },
        inputs={"clicks": Input(ids.GALLERY_OPEN, "n_clicks")},
        state={
            "name": State(ids.GALLERY_OPEN, "name"),
            "parameter": State({"parameter": ALL}, "value"),
            "parameter_checked": State({"parameter": ALL}, "checked"),
        },
    )
    def on_open(name: str, **_: Any) -> Json:
        rows = [row for group in ctx.states_list[1:] for row in group]
        given = {row["id"]["parameter"]: row["value"] for row in rows if "value" in row}
        try:
            drawing = drawing_of(opened(name, given))
        except CclError as error:
            return refused(name, str(error))
        return {
            "drawing": request.as_document(drawing),
            "command": request.fit(),
            "gallery_dialog_opened": False,
            "other": request.now(),
        }

    @callback(
        app,
        output=request.changes("drawing", "other", "notes"),
        inputs={"clicks": Input(ids.NEW, "n_clicks")},
        state={"drawing": State(ids.CANVAS, "drawing")},
    )
    def on_new(drawing: Json, **_: Any) -> Json:
        before = drawing["topology"]
        begun = {"drawing": request.as_document(EMPTY), "other": request.now()}
        if not before["devices"]:
            return begun
        told = (
            f"Ctrl+Z brings {before['name']} back, after a reload as well; it is kept among the"
            " drawings"
        )
        return {**begun, "notes": ui.note(told, "plain", title="A new drawing")}
