"""Display of the nouns at the end of a notebook's cell.

Nothing here draws. Who can says so with an entry point of the group `GROUP`: a function of a noun
that returns its MIME bundle, or None where it does not know the noun. `widgets` does; without it a
noun shows its `repr`.
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

GROUP = "topoloom.displays"

MimeBundle = tuple[dict[str, Any], dict[str, Any]]
"""Data and metadata by MIME type, as IPython takes them from ``_repr_mimebundle_``."""

Display = Callable[[Any], MimeBundle | None]


def mime_bundle(noun: Any, include: Any = None, exclude: Any = None) -> MimeBundle | None:
    """Return what a notebook shows of a noun; it is the noun's ``_repr_mimebundle_``.

    Parameters
    ----------
    noun
        What is shown.
    include, exclude
        MIME types that IPython includes or excludes; it chooses from all of them itself.

    Returns
    -------
        Data and metadata, or None where nobody draws: then IPython shows the `repr`.
    """
    del include, exclude
    made = (display(noun) for display in _displays())
    return next((bundle for bundle in made if bundle is not None), None)


@cache
def _displays() -> tuple[Display, ...]:
    """Load whoever draws, once."""
    return tuple(found.load() for found in entry_points(group=GROUP))
