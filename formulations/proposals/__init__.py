"""Proposals: networks for a number of GPUs and ports, scored exactly, the best in two respects.

>>> from formulations.proposals import Request, propose
>>> for front in propose(Request(gpus=16, ports=4, seconds=2)):  # doctest: +SKIP
...     print(front.seconds, front.candidates[0].name)
"""

from formulations.proposals.families import host_of
from formulations.proposals.front import (
    AXES,
    Axis,
    Bill,
    Candidate,
    Front,
    Prices,
    pareto,
    undominated,
)
from formulations.proposals.request import USUAL_MIX, Mix, Request, Use, read_mix
from formulations.proposals.scores import Rate, Score, all_to_all_rate, score
from formulations.proposals.search import propose

__all__ = [
    "AXES",
    "USUAL_MIX",
    "Axis",
    "Bill",
    "Candidate",
    "Front",
    "Mix",
    "Prices",
    "Rate",
    "Request",
    "Score",
    "Use",
    "all_to_all_rate",
    "host_of",
    "pareto",
    "propose",
    "read_mix",
    "score",
    "undominated",
]
