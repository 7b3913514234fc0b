"""A program that was tampered with is found wrong exactly where a second opinion says so."""

from __future__ import annotations

import random

import pytest

from ccl.errors import FormatError
from interchange.execution import execute
from interchange.formats.runtimes.msccl_xml import program_from_xml, program_to_xml
from tests.interchange.execution.mutations import mutated, mutated_xml
from tests.interchange.execution.oracle import verdict
from tests.interchange.execution.programs import RIGHT

MUTANTS = 640
"""Of all programs together, and as many of their files."""


@pytest.mark.parametrize("name", RIGHT)
def test_the_second_opinion_agrees_that_a_program_is_right(name):
    assert verdict(RIGHT[name]()) is None


@pytest.mark.parametrize("name", RIGHT)
def test_every_mutant_is_found_or_proved_to_be_right_all_the_same(name):
    """The oracle proves by the closure of all orderings and by multisets of contributions.

    It and the interpreter must agree on each of the mutants, both ways; most edits break something.
    """
    program, chance = RIGHT[name](), random.Random(name)
    each = MUTANTS // len(RIGHT)
    found = 0
    for _ in range(each):
        words, mutant = mutated(program, chance)
        why, execution = verdict(mutant), execute(mutant, interleavings=20)
        assert execution.ok == (why is None), (words, why, execution.findings, mutant)
        found += not execution.ok

    assert found > each / 2


@pytest.mark.parametrize("name", RIGHT)
def test_every_mutated_file_is_refused_found_or_proved_to_be_right_all_the_same(name):
    """A file that is read as another program than was meant passes only if that one is right."""
    text, chance = program_to_xml(RIGHT[name]()), random.Random(name)
    stopped = 0
    for _ in range(MUTANTS // len(RIGHT)):
        words, mutant = mutated_xml(text, chance)
        try:
            program = program_from_xml(mutant.encode())
        except FormatError:
            stopped += 1
            continue
        why, execution = verdict(program), execute(program, interleavings=20)
        assert execution.ok == (why is None), (words, why, execution.findings)
        stopped += not execution.ok

    assert stopped > MUTANTS / len(RIGHT) / 2
