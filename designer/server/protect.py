"""Putting the checks around an application."""

from __future__ import annotations

import logging
from http import HTTPStatus
from pathlib import Path
from typing import Any

from dash import Dash
from dash.exceptions import DependencyException
from flask import Response, current_app, request
from werkzeug.exceptions import HTTPException

from designer.server import questions, sessions, shapes
from designer.server.address import Names
from designer.server.guard import ASK, MOST_BODY, Guard, Refused, policy

log = logging.getLogger(__name__)


def protect(app: Dash, names: Names) -> None:
    """Let only pages of the application ask it, and only what they can ask.

    Parameters
    ----------
    app
        With all of its callbacks.
    names
        Under which browsers may ask for it.
    """
    shapes.settle()
    server = app.server
    server.config["MAX_CONTENT_LENGTH"] = MOST_BODY
    server.json = questions.Provider(server)
    sessions.install(server, names)
    server.register_error_handler(Refused, _refused)
    server.register_error_handler(DependencyException, _nothing)
    server.register_error_handler(HTTPException, _http)
    server.register_error_handler(Exception, _failed)

    def ask() -> None:
        if request.path == ASK:
            questions.check(_body(), app.callback_map)

    server.before_request(ask)
    server.wsgi_app = Guard(
        server.wsgi_app,
        names=names,
        assets=_files(Path(app.config.assets_folder)),
        policy=policy(app.csp_hashes()),
    )


def _body() -> Any:
    """Return what is posted.

    Raises
    ------
    Refused
        If it is no JSON that a page writes.
    """
    try:
        return current_app.json.loads(request.get_data())
    except (ValueError, RecursionError):
        sentence = "This is not JSON as a page of this application writes it."
        raise Refused(HTTPStatus.BAD_REQUEST, sentence) from None


def _files(folder: Path) -> frozenset[str]:
    """Return the files of a folder as they are asked for; a link to elsewhere is none."""
    return frozenset(
        each.relative_to(folder).as_posix()
        for each in folder.rglob("*")
        if each.is_file() and not each.is_symlink()
    )


def _refused(refused: Refused) -> Response:
    return _sentence(refused.status, refused.sentence)


def _nothing(_error: DependencyException) -> Response:
    """Answer who asks for a part of a package that the page does not load."""
    return _sentence(HTTPStatus.NOT_FOUND, "There is nothing here.")


def _http(error: HTTPException) -> Response:
    status = HTTPStatus(error.code or 500)
    return _sentence(status, f"{status.phrase}.")


def _failed(error: Exception) -> Response:
    """Log a bug in what answers; callbacks have their own way of saying so."""
    log.error("a request failed", exc_info=error)
    return _sentence(HTTPStatus.INTERNAL_SERVER_ERROR, "This is a bug in Topoloom.")


def _sentence(status: HTTPStatus, sentence: str) -> Response:
    return Response(f"{sentence}\n", status, content_type="text/plain; charset=utf-8")
