"""Every solved plan in a file, found again at once on every cluster of the same shape.

>>> from formulations.campaigns import catalog
>>> plans = catalog.Catalog("plans.sqlite")  # doctest: +SKIP
>>> result = catalog.solve(problem, catalog=plans, time_limit=60)  # doctest: +SKIP
>>> plans.find(relabelled).makespan  # doctest: +SKIP

``catalog`` has the front door, ``answering`` solves with it, ``entry`` is a line of it,
``questions`` says what is one question, ``rows``, ``packed``, ``tables`` and ``migrations`` are how
it lies in the file. ``tuning`` finds the best plan of each range
of sizes and ``tuner`` is the table of them, ``atlas`` finds the best method of each collective and
size, ``lines`` writes and reads plans.
"""

from formulations.campaigns.catalog.answering import solve
from formulations.campaigns.catalog.catalog import Catalog, usual_path
from formulations.campaigns.catalog.lines import read_lines, write_lines
from formulations.campaigns.catalog.tuner import Entry, TunerRange, TunerTable
from formulations.campaigns.catalog.tuning import Atlas, Cell, atlas_of, regimes, tuned

__all__ = [
    "Atlas",
    "Catalog",
    "Cell",
    "Entry",
    "TunerRange",
    "TunerTable",
    "atlas_of",
    "read_lines",
    "regimes",
    "solve",
    "tuned",
    "usual_path",
    "write_lines",
]
