"""What stays of a view where no kernel runs: a picture and words beside it, in one MIME bundle.

A saved notebook keeps both, so that whoever cannot run the view shows them.
"""

import logging
from collections.abc import Callable
from typing import Any

from ccl.display import MimeBundle
from ccl.errors import CclError
from ccl.serialization.documents import Document, document
from widgets.pages.saving import Content, Saving
from widgets.print.style import StillOptions
from widgets.view_model.scene import moves
from widgets.words import problem_words, result_words, topology_words

SVG = "image/svg+xml"
TEXT = "text/plain"
VIEW = "application/vnd.jupyter.widget-view+json"
STILL = "application/vnd.topoloom.still+json"
"""Says to JupyterLab that the picture stands for the view where no kernel runs (`widgets/lab`).

It also shows the SVG of a notebook that it does not trust, as a picture that can run nothing.
"""

WIDTH = 960
"""Pixels of a picture."""
MOST_CELLS = 1_000
"""Chunks of all GPUs of a picture at a moment: each is a shape in the notebook."""
MOST_MOVES = 20_000
"""Transfers of a plan that is drawn at a moment."""

_LOG = logging.getLogger(__name__)


class Still(Saving):
    """A view with a picture and words beside it; its class says in `_held` what they show."""

    def _words(self) -> str:
        """Say what is shown."""
        return words(self._held())

    def _picture(self) -> str | None:
        """Return an SVG of what is shown, or None."""
        return picture(self._held())

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Put the picture and the words beside the view."""
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]  # the view's own
        return beside(bundle, description=self._words, drawn=self._picture)


class InWords:
    """A view of which only words stay; its class says them in `words`."""

    words: str

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """Put the words beside the view."""
        bundle = super()._repr_mimebundle_(**options)  # type: ignore[misc]  # the view's own
        return beside(bundle, description=lambda: self.words, drawn=lambda: None)


def beside(
    bundle: Any, *, description: Callable[[], str], drawn: Callable[[], str | None]
) -> MimeBundle | None:
    """Add words and a picture to the bundle of a view; neither hides the other.

    Parameters
    ----------
    bundle
        As ipywidgets or anywidget makes it; None, of a view that is closed, stays None.
    description, drawn
        What makes the words and the SVG.
    """
    if bundle is None:
        return None
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    added: dict[str, Any] = {TEXT: _tried(description), SVG: _tried(drawn)}
    if VIEW in data or added[SVG] is not None:
        added[STILL] = {}
    return {**data, **{kind: made for kind, made in added.items() if made is not None}}, metadata


def words(content: Content) -> str:
    """Say what something is."""
    held = content if isinstance(content, Document) else document(content)
    if held.result is not None:
        return result_words(held.result)
    if held.problem is not None:
        return problem_words(held.problem)
    return topology_words(held.topology)


def picture(content: Content) -> str:
    """Draw something as SVG: the cluster, and of a small plan what is where half-way through."""
    from widgets.print.film import write_svg  # noqa: PLC0415 - it loads matplotlib

    held = content if isinstance(content, Document) else document(content)
    chosen = StillOptions(width=WIDTH, time=_moment(held))
    return write_svg(held, chosen).content.decode()


def _moment(held: Document) -> float | None:
    """µs at which a plan is drawn."""
    if held.result is None:
        return None
    timeline, problem = held.result.timeline, held.result.problem
    cells = len(problem.topology.ranks) * len(problem.collective.chunks)
    if cells > MOST_CELLS or moves(timeline) > MOST_MOVES:
        return None
    return timeline.makespan / 2


def _tried(make: Callable[[], str | None]) -> str | None:
    """Return what is made, or None: a cell shows the rest, and the log has the reason."""
    try:
        return make()
    except CclError as error:
        _LOG.info("no picture: %s", error)
    except Exception:  # noqa: BLE001 - a bug of a picture must not hide the words
        _LOG.exception("no picture")
    return None
