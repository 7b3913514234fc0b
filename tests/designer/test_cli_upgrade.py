"""``topoloom upgrade``: what to buy, in a sentence, tables and JSON."""

import json

import pytest

from ccl.serialization.documents import read_document
from designer.cli import main

COSTS = """
currency: $
links:
  - {medium: InfiniBand, cost: 400, step: 12.5, most: 200}
  - {cost: 60, step: link}
devices: {gpu: 1000}
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line beside a file of costs; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "costs.yaml").write_text(COSTS, "utf-8")

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["upgrade", *map(str, arguments)])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


def test_it_says_what_to_buy_what_it_costs_and_what_then_holds(run):
    code, out, err = run("dgx-a100:hosts=2", "--costs", "costs.yaml", "--save", "then.json")

    assert code == 0
    assert out.startswith(
        "150 GB/s more on each of the 16 NVLink 3 links of 300 GB/s and 12.5 GB/s more on each of "
        "the 16 InfiniBand HDR links of 25 GB/s cost $224,000; then all-gather runs at 520 GB/s, "
    )
    assert "nothing cheaper" in out
    # 16 GPUs, as many NVLinks of 300 and ports of 25 GB/s, 8 links of 50 GB/s to the spine.
    assert f"${16 * 1000 + 16 * 300 * 60 + (16 * 25 + 8 * 50) * 400:,}" in out
    assert "450 GB/s (6 links more each)" in out
    assert err == "the upgraded cluster is in then.json\n"
    widest = max(each.bandwidth for each in read_document("then.json").topology.links)
    assert widest == 450


def test_several_collectives_as_json(run):
    code, out, _ = run(
        "ndv2:hosts=2", "--collective", "all-gather", "--collective", "broadcast",
        "--target", "30", "--target", "2x", "--json",
    )  # fmt: skip

    told = json.loads(out)
    assert (code, told["proved"], told["cost"]) == (0, True, 25.0)
    assert [(e["collective"], e["target_GBps"]) for e in told["collectives"]] == [
        ("all-gather", 30),
        ("broadcast", 25),
    ]
    assert [e["after_GBps"] for e in told["changes"]] == [50, 25, 25]


def test_a_front_is_a_table_of_points(run):
    """A ring of 4 has one kind of links, so cost is a straight line: 4 links of 50 GB/s more."""
    code, out, err = run("ring:gpus=4", "--front", "--target", "2x")
    assert (code, err) == (0, "")
    rows = [" ".join(line.split()) for line in out.splitlines()[-2:]]
    assert rows == ["1× 0 GB/s 133 GB/s –", "2× 200 GB/s 267 GB/s links at 50 GB/s to 100 GB/s"]

    _, out, _ = run("ring:gpus=4", "--front", "--target", "2x", "--json")
    assert [each["factor"] for each in json.loads(out)["points"]] == pytest.approx([1, 2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "soon"), "no algbw"),
        (("--front", "--target", "300"), "--front goes up to a factor, not to 300"),
        (("--front", "--target", "2x", "--target", "3x"), "not to 2x and 3x"),
        (("--front", "--save", "all.json"), "leave one of them out"),
        (("--costs", "none.yaml"), "cannot be read"),
        (("--time-limit", "-1"), "more than 0 s"),
        (("--by", "colour"), "orbit"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(run, arguments, said):
    code, out, err = run("ring:gpus=4", *arguments)

    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_nothing_to_buy_is_said(run):
    code, out, _ = run("ring:gpus=4", "--target", "1x")
    assert code == 0
    assert out.startswith("Nothing has to be bought: all-gather runs at 133 GB/s")
