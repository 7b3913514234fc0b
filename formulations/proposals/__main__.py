"""``python -m formulations.proposals``: a child process of `formulations.proposals.beside`."""

from formulations.jobs.child import answer_one
from formulations.proposals.beside import anneal

answer_one(anneal)
