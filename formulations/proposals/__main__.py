"""``python -m formulations.proposals``: a child process of its annealing on several cores."""

from formulations.jobs.child import answer_one
from formulations.proposals.parallel_annealing import anneal

answer_one(anneal)
