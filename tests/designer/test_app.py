"""The application serves its page from this machine and survives its own bugs."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from designer.app import HOME_CLUSTER, create_app
from designer.jobs import Jobs
from designer.shell import ids
from gallery import open_cluster


@pytest.fixture(scope="module")
def app():
    jobs = Jobs(lambda *_args, **_kwargs: pytest.fail("nothing is solved here"))
    yield create_app(jobs=jobs)
    jobs.close()


def ask(app, output, inputs, state=()):
    """Post what the page posts when an input changes."""
    name, prop = output.split(".")
    return app.server.test_client().post(
        "/_dash-update-component",
        json={
            "output": output,
            "outputs": {"id": name, "property": prop},
            "inputs": [{"id": i, "property": p, "value": v} for i, p, v in inputs],
            "state": [{"id": i, "property": p, "value": v} for i, p, v in state],
            "changedPropIds": [f"{inputs[0][0]}.{inputs[0][1]}"],
        },
    )


def test_the_usual_page_shows_a_gallery_cluster_and_lets_the_browser_bring_back_its_own(app):
    home = next(each for each in app.layout.children if getattr(each, "id", "") == ids.HOME)
    assert home.data["drawing"]["topology"]["name"] == open_cluster(HOME_CLUSTER).name
    assert home.data["chosen"] is False


def test_what_was_asked_for_on_the_command_line_is_shown(drawn):
    jobs = Jobs(lambda *_args, **_kwargs: pytest.fail("nothing is solved here"))
    app = create_app({"topology": drawn, "positions": {}}, jobs=jobs)
    jobs.close()
    home = next(each for each in app.layout.children if getattr(each, "id", "") == ids.HOME)
    assert home.data == {"drawing": {"topology": drawn, "positions": {}}, "chosen": True}


def test_a_callback_answers(app):
    answer = ask(app, f"{ids.CANVAS}.link_preset", [(ids.LINK_TYPE, "value", "edr")])
    assert answer.status_code == 200
    preset = answer.get_json()["response"][ids.CANVAS]["link_preset"]
    assert preset["medium"] == "InfiniBand EDR"


def test_a_bug_is_logged_and_shown_and_the_application_stays_up(app, caplog, monkeypatch):
    with monkeypatch.context() as broken, caplog.at_level(logging.ERROR, logger="designer.app"):
        broken.setattr("designer.shell.ui.link_type", lambda _name: {}["where it runs"])
        answer = ask(app, f"{ids.CANVAS}.link_preset", [(ids.LINK_TYPE, "value", "edr")])
    assert answer.status_code in {200, 204}
    assert "is a bug in Topoloom" in answer.get_data(as_text=True)
    assert "where it runs" not in answer.get_data(as_text=True)
    assert "a callback failed" in caplog.text
    assert "KeyError: 'where it runs'" in caplog.text
    assert (
        ask(app, f"{ids.CANVAS}.link_preset", [(ids.LINK_TYPE, "value", "edr")]).status_code == 200
    )


def test_the_page_names_no_other_machine(app):
    page = app.server.test_client().get("/").get_data(as_text=True)
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_every_icon_of_the_page_has_its_file(app):
    folder = app.config.assets_folder
    sheet = (Path(folder) / "icons.css").read_text()
    names = set(re.findall(r"ico-([a-z]+)", str(app.layout)))
    assert names
    for name in names:
        assert f".ico-{name} " in sheet
        assert (Path(folder) / "icons" / f"{name}.svg").exists()
