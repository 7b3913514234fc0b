"""Quantities as people type them, read alike by Python and by the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccl.errors import FormatError
from ccl.serialization.quantity import (
    COUNT,
    DURATION,
    KINDS,
    LATENCY,
    NUMBER,
    SIZE,
    kind_of,
    parse_quantity,
)

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "quantities.json").read_text(encoding="utf-8")
)
"""Also read by widgets/js/test/quantity.test.js."""


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row['kind']}:{row['text'][:20]}")
def test_a_quantity_is_read_or_refused_as_the_table_has_it(row):
    limits = {each: row[each] for each in ("least", "above", "most") if each in row}
    kind = KINDS[row["kind"]]
    if "trouble" in row:
        with pytest.raises(FormatError) as refused:
            parse_quantity(row["text"], kind, what=row["kind"], **limits)
        assert str(refused.value) == row["trouble"]
    else:
        assert parse_quantity(row["text"], kind, what=row["kind"], **limits) == row["value"]


def test_a_number_that_is_one_already_is_checked_as_well():
    assert parse_quantity(2.5, NUMBER, what="it") == 2.5
    with pytest.raises(FormatError, match="is not a whole number"):
        parse_quantity(2.5, COUNT, what="chunks")
    with pytest.raises(FormatError, match="it 'True' is not a number"):
        parse_quantity(True, NUMBER, what="it")


def test_a_unit_has_a_kind():
    assert kind_of("µs") is LATENCY
    assert kind_of("s") is DURATION
    assert kind_of("bytes") is SIZE
    assert kind_of("rank", whole=True) is COUNT
    assert kind_of("") is NUMBER
