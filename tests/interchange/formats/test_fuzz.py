"""Broken files are refused in words; ``make fuzz`` does this for as long as one likes."""

import pytest

from interchange.formats.catalogue import readers
from tests.robust.fuzz import NUMBERS, fuzz, numbers

MANY = 30


@pytest.mark.parametrize("name", [each.name for each in readers()])
@pytest.mark.cover(4)
def test_broken_files_are_refused_and_nothing_else_happens(name):
    """Nothing but our errors, no file opened, no memory or time out of proportion."""
    (tally,) = fuzz([name], seconds=120, seed=1, most=MANY).values()

    assert tally.findings == []
    assert tally.files == MANY


@pytest.mark.parametrize("name", [each.name for each in readers()])
@pytest.mark.cover(4)
def test_hostile_numbers_are_read_or_refused_wherever_a_number_stands(name):
    """Huge exponents and digits without end, in the place of every kind of number of a format."""
    tally = numbers(name, files=1, places=5)

    assert tally.findings == []
    assert tally.files >= len(NUMBERS)
