"""``topoloom design`` and ``topoloom gallery``."""

from __future__ import annotations

import socket
from typing import Annotated, Any

import typer
from rich.table import Table

from ccl.formats.documents import document, document_text, document_to_json
from ccl.layout import layout
from ccl.topology import Topology
from designer.cli.inputs import AsJson, Out, open_any
from designer.cli.output import console, hand_over, say_json, say_rows
from gallery import Entry, catalog, entry, open_cluster

HIGHEST_PORT = 65535

Opened = Annotated[
    str | None,
    typer.Argument(metavar="[FILE|CLUSTER]", help="What is open at first.", show_default=False),
]
Port = Annotated[int, typer.Option("--port", help="Where it listens.", min=1, max=HIGHEST_PORT)]
Host = Annotated[str, typer.Option("--host", help="Address on which it listens.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")]
Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="A cluster with arguments, such as torus:shape=4x4."),
]


def design(
    cluster: Opened = None,
    *,
    port: Port = 8050,
    host: Host = "127.0.0.1",
    browser: Browser = True,
) -> None:
    """Draw, solve and watch in the browser."""
    opened = None if cluster is None else open_any(cluster)
    _check_free(host, port)
    # These load the browser application, which no other command needs.
    from designer.app import serve  # noqa: PLC0415
    from designer.files import drawing_of  # noqa: PLC0415

    drawing = None if opened is None else drawing_of(opened.topology, opened.positions)
    typer.echo(f"Topoloom is at http://{host}:{port}/ and Ctrl-C ends it", err=True)
    serve(drawing, host=host, port=port, open_browser=browser)


def gallery(name: Name = None, *, out: Out = None, as_json: AsJson = False) -> None:
    """List the ready clusters, or say what one is made of; --out writes its topology."""
    if name is None:
        if out is not None:
            msg = "--out writes one cluster; name it, such as: topoloom gallery ndv2 --out F.json"
            raise typer.BadParameter(msg)
        _say_catalog(as_json=as_json)
        return
    found, topology = entry(name.partition(":")[0]), open_cluster(name)
    made = document(topology, positions=layout(topology))
    if out is not None:
        hand_over(document_text(made), out, what="the topology")
    elif as_json:
        say_json(document_to_json(made))
    else:
        say_rows(_story(found, topology))


def _say_catalog(*, as_json: bool) -> None:
    if as_json:
        say_json([_entry_json(each) for each in catalog()])
        return
    table = Table("Name", "Cluster", "Arguments", "Source", box=None, pad_edge=False)
    family = ""
    for each in catalog():
        if each.family != family:
            family = each.family
            table.add_row(style="dim", end_section=True)
            table.add_row("", family, style="bold")
        arguments = ", ".join(f"{key}={value}" for key, value in _arguments(each).items())
        table.add_row(each.name, each.title, arguments, each.source)
    console().print(table)


def _entry_json(found: Entry) -> dict[str, Any]:
    return {
        "name": found.name,
        "title": found.title,
        "family": found.family,
        "summary": found.summary,
        "source": found.source,
        "arguments": _arguments(found),
    }


def _arguments(found: Entry) -> dict[str, str]:
    return {each.name: _typed(each.default) for each in found.parameters}


def _typed(value: Any) -> str:
    """Return a value as it is typed after the equals sign."""
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _story(found: Entry, topology: Topology) -> list[tuple[str, str]]:
    """Say what a cluster is made of and what its figures rest on."""
    kinds = [each.kind for each in topology.devices]
    counts = [f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds)]
    rows = [
        ("cluster", found.title),
        ("", found.summary),
        ("source", found.source),
        ("devices", ", ".join(counts)),
        ("links", f"{len(topology.links)} one-way, {len(topology.limits)} shared limits"),
    ]
    rows += [(each.what, f"{each.value} ({each.standing})") for each in found.figures]
    rows += [
        (f"{each.name}={_typed(each.default)}", _meaning(each.meaning, each.choices))
        for each in found.parameters
    ]
    return rows


def _meaning(meaning: str, choices: tuple[str, ...]) -> str:
    return f"{meaning}: {' or '.join(choices)}" if choices else meaning


def _check_free(host: str, port: int) -> None:
    """Refuse an address on which it cannot listen, before anything is loaded."""
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        msg = f"{host}:{port} cannot be listened on: {reason}; give another --port or --host"
        raise typer.BadParameter(msg) from None
