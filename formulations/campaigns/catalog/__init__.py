"""Every solved plan in a file, found again at once on every cluster of the same shape.

>>> from formulations.campaigns import catalog
>>> plans = catalog.Catalog("plans.sqlite")  # doctest: +SKIP
>>> result = catalog.solve(problem, catalog=plans, time_limit=60)  # doctest: +SKIP
>>> plans.find(relabelled).makespan  # doctest: +SKIP

``catalog`` has the front door and carries plans elsewhere, ``answering`` solves with it, ``tables``
and ``relabelling`` are how it lies in the file. ``tuning`` finds the best plan of each range of
sizes and the best method of each collective and size, ``tuner`` is the table of them.
``proposals`` keeps searches for networks in the same file.
"""

from formulations.campaigns.catalog.answering import solve
from formulations.campaigns.catalog.catalog import Catalog, read_lines, usual_path, write_lines
from formulations.campaigns.catalog.proposals import (
    Proposal,
    ProposalEntry,
    Proposals,
    View,
    digest_of,
)
from formulations.campaigns.catalog.tuner import Entry, TunerRange, TunerTable
from formulations.campaigns.catalog.tuning import Atlas, Cell, atlas_of, regimes, tuned

__all__ = [
    "Atlas",
    "Catalog",
    "Cell",
    "Entry",
    "Proposal",
    "ProposalEntry",
    "Proposals",
    "TunerRange",
    "TunerTable",
    "View",
    "atlas_of",
    "digest_of",
    "read_lines",
    "regimes",
    "solve",
    "tuned",
    "usual_path",
    "write_lines",
]
