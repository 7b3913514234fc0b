"""The application as it is served, without a server: requests say what a browser says."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from ccl.serialization.topoloom import topology_to_json
from designer.app import create_app
from designer.jobs import Jobs
from designer.server.guard import ASK, names
from designer.shell import ids

PORT = 8050
HOST = f"127.0.0.1:{PORT}"


class Waiting:
    """A solve that does nothing until it is cancelled."""

    def __init__(self) -> None:
        self.over = Event()
        self.best = None

    def __iter__(self):
        self.over.wait(20)
        return iter(())

    def result(self):
        pytest.fail("it is never asked for")

    def cancel(self) -> None:
        self.over.set()


@pytest.fixture(scope="session")
def begun() -> list[Waiting]:
    """Solves that were begun."""
    return []


@pytest.fixture(scope="session")
def app(begun):
    def start(*_args, **_kwargs):
        begun.append(Waiting())
        return begun[-1]

    jobs = Jobs(start)
    yield create_app(jobs=jobs, known=names("127.0.0.1", PORT, ["lab.example.org"]))
    jobs.close()


@pytest.fixture
def client(app):
    """A browser with a session of its own."""
    return app.server.test_client()


@pytest.fixture
def ask(app) -> Callable[..., Any]:
    """Return a way to ask what a page asks when an input changes; values by ``id.property``."""

    def post(client, trigger: str, values, *, writes="", change=None, **fields):
        known = next(
            key
            for key, has in app.callback_map.items()
            if "callback" in has
            and key.strip(".").startswith(writes)
            and any(f"{row['id']}.{row['property']}" == trigger for row in has["inputs"])
        )
        has = app.callback_map[known]
        rows = {
            part: [
                {**row, "value": values.get(f"{row['id']}.{row['property']}")} for row in has[part]
            ]
            for part in ("inputs", "state")
        }
        several = known.startswith("..")
        listed = known.strip(".").split("...") if several else [known]
        outputs = [
            {"id": name, "property": what}
            for name, _, what in (each.rpartition(".") for each in listed)
        ]
        body = {
            "output": known,
            "outputs": outputs if several else outputs[0],
            "changedPropIds": [trigger],
            **rows,
        }
        if change is not None:
            change(body)
        headers = {"Host": HOST, "Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
        told = {name.replace("_", "-"): value for name, value in fields.items()}
        return client.post(ASK, json=body, headers=headers | told)

    return post


@pytest.fixture
def drawing(ring) -> dict[str, Any]:
    return {"topology": topology_to_json(ring), "positions": {}}


REQUEST = {"collective": "all-gather", "size": "1MB", "chunks": 1, "root": 0, "options": {}}


SOLVING = {"trigger": f"{ids.SOLVE}.n_clicks", "writes": f"{ids.JOB}.data"}
"""The question that begins a solve."""


@pytest.fixture
def values(drawing) -> dict[str, Any]:
    """What a page holds."""
    return {
        f"{ids.SOLVE}.n_clicks": 1,
        f"{ids.CANVAS}.drawing": drawing,
        f"{ids.REQUEST}.data": REQUEST,
        f"{ids.BEAT}.data": 1,
    }
