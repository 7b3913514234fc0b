"""The canvas as a Dash component: edits reach callbacks, callbacks reach the canvas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dash import Dash, Input, Output, State, html
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server

from widgets import TopologyCanvas

pytestmark = pytest.mark.browser

GPUS = 12


@pytest.fixture
def address() -> Iterator[str]:
    """Serve a page with a canvas, a count of its devices and buttons that command it."""
    app = Dash(__name__)
    app.layout = html.Div(
        [
            html.Button("clear", id="clear"),
            html.Button("undo", id="undo"),
            html.Output(id="count"),
            TopologyCanvas(id="canvas", height="500px", theme="dark"),
        ]
    )

    @app.callback(Output("count", "children"), Input("canvas", "drawing"))
    def _count(drawing: dict[str, Any] | None) -> str:
        return f"{len(drawing['topology']['devices']) if drawing else 0} devices"

    @app.callback(
        Output("canvas", "drawing"), Input("clear", "n_clicks"), prevent_initial_call=True
    )
    def _clear(_clicks: int) -> dict[str, Any]:
        return {"topology": {"name": "none", "devices": [], "links": []}, "positions": {}}

    @app.callback(
        Output("canvas", "command"),
        Input("undo", "n_clicks"),
        State("canvas", "drawing"),
        prevent_initial_call=True,
    )
    def _undo(clicks: int, _drawing: dict[str, Any]) -> dict[str, Any]:
        return {"name": "undo", "args": {}, "n": clicks}

    server = make_server("127.0.0.1", 0, app.server, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_edits_and_commands_cross_between_page_and_server(
    address: str, page: Page, drive: Callable[[Page], Any]
) -> None:
    """What was drawn comes back as props while drawing goes on; it must not undo anything."""
    page.goto(address)
    canvas = drive(page)
    canvas.keys(*"g" * GPUS)
    expect(page.locator("#count")).to_have_text(f"{GPUS} devices")
    assert canvas.ask("c.canvas.history.past.length") == GPUS

    page.locator("#clear").click()
    expect(page.locator("#count")).to_have_text("0 devices")
    expect(page.get_by_text("Draw your first cluster")).to_be_visible()

    page.locator("#undo").click()
    expect(page.locator("#count")).to_have_text(f"{GPUS} devices")
    assert len(canvas.names) == GPUS
