"""``topoloom limits``."""

import json

import pytest

from designer.cli import main


def run(capsys, *arguments):
    """Return the exit code and what was printed."""
    with pytest.raises(SystemExit) as left:
        main(["limits", *arguments])
    out = capsys.readouterr()
    return left.value.code, out.out, out.err


def test_it_says_what_limits_a_cluster_and_ranks_its_links(capsys):
    """Two hosts of a DGX A100: what a GPU takes in, 300 + 25 GB/s, holds the all-gather down."""
    code, out, _ = run(capsys, "dgx-a100:hosts=2")

    assert code == 0
    assert "the bottleneck cut is 325 GB/s into g0" in out
    assert out.index("12/13") < out.index("1/13")


def test_a_class_has_a_curve_with_its_kinks(capsys):
    """NVLink x gives 320 x + 80/3 until 400 GB/s, what ports of 25 GB/s allow, at x = 7/6."""
    code, out, _ = run(capsys, "dgx-a100:hosts=2", "--class", "1", "--low", "0.5", "--json")
    told = json.loads(out)
    curve = told["curve"]

    assert code == 0
    assert [each["factor_exact"] for each in curve["breaks"]] == ["1/2", "7/6", "4"]
    assert [each["algbw_GBps_exact"] for each in curve["breaks"]] == ["560/3", "400", "400"]
    assert [each["slope_GBps"] for each in curve["pieces"]] == [320.0, 0.0]
    assert told["classes"][0]["more_exact"] == "12/13"
    assert told["together"] == []


def test_a_class_that_is_not_there_is_refused(capsys):
    code, _, err = run(capsys, "dgx-a100:hosts=2", "--class", "9")

    assert code == 2
    assert err == "topoloom: --class is 9, and there are classes 1 to 3; give one\n"


def test_a_range_that_is_none_is_refused(capsys):
    code, _, err = run(capsys, "dgx-1v", "--class", "1", "--low", "2", "--high", "2")

    assert code == 2
    assert "give 0 < low < high" in err
