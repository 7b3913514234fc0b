"""Quantities read as people write them."""

from __future__ import annotations

import math

import pytest

from ccl import text


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [
        (0, "0 µs"),
        (9.84, "9.84 µs"),
        (0.5, "0.5 µs"),
        (41.28, "41.3 µs"),
        (999.4, "999 µs"),
        (999.6, "1 ms"),
        (1_240, "1.24 ms"),
        (5e6, "5 s"),
        (None, "–"),
        (math.inf, "–"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_fits(microseconds, words):
    assert text.duration(microseconds) == words


def test_a_bandwidth_is_shown_in_bytes_and_in_bits():
    assert text.bandwidth(12.5) == "12.5 GB/s"
    assert text.bandwidth(1_800) == "1.8 TB/s"
    assert text.gigabits(12.5) == "100 Gb/s"


def test_sizes_have_decimal_prefixes():
    assert [text.size(each) for each in (512, 1e6, 2.5e9)] == ["512 B", "1 MB", "2.5 GB"]


def test_a_share_below_rounding_is_zero():
    assert text.share(1e-9) == "0 %"
    assert text.share(0.1667) == "16.7 %"


def test_long_times_are_told_in_minutes():
    assert text.seconds(0.142) == "0.142 s"
    assert text.seconds(200) == "3 min 20 s"


def test_counts_and_lists_read_as_words():
    assert text.count(1, "GPU") == "1 GPU"
    assert text.count(4, "switch", "switches") == "4 switches"
    assert text.listing(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert text.listing(["a", "b"], 2) == "a, b"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("the drawing is empty", "The drawing is empty."),
        ("all-gather needs 2 GPUs", "All-gather needs 2 GPUs."),
        ("mine.json: line 1 is not JSON", "mine.json: line 1 is not JSON."),
        ("GPU gpu0 does not store", "GPU gpu0 does not store."),
        ("gpu0 is twice there.", "gpu0 is twice there."),
    ],
)
def test_a_message_becomes_a_sentence_but_names_stay_as_they_are(words, shown):
    assert text.sentence(words) == shown
