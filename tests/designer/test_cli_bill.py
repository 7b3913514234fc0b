"""``topoloom bill``."""

import csv
import json
import zipfile

import pytest

from designer.cli import main


def run(capsys, *arguments):
    """Return the exit code and what was printed."""
    with pytest.raises(SystemExit) as left:
        main(["bill", *map(str, arguments)])
    out = capsys.readouterr()
    return left.value.code, out.out, out.err


def test_it_prints_a_bill_and_writes_it_with_its_cables(capsys, tmp_path):
    """Two DGX H100 on one switch: 16 GPUs, 16 cables of 3.6 m; 673 thousand dollars in all.

    16 x 38,750 + 36,000 + 16 x 560 + 8 x 850 + 16 x 60 + 57.6 x 3, where the first is no network.
    """
    out, cables = tmp_path / "bill.xlsx", tmp_path / "cables.csv"
    code, printed, said = run(
        capsys, "dgx-h100:hosts=2,fabric=flat", "--out", out, "--cables", cables
    )

    assert code == 0
    assert "$673 thousand" in printed
    assert "$52.9 thousand" in printed
    assert "switch-64: $: reseller's" in printed
    assert "16 multimode; 58 m, the longest 3.6 m" in printed
    assert "power whips and cooling are not modelled" in said
    with cables.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert {row["type"] for row in rows} == {"mmf-om4"}
    assert zipfile.is_zipfile(out)


def test_prices_of_ones_own_count_and_a_bill_is_json(capsys, tmp_path):
    own, out = tmp_path / "own.yaml", tmp_path / "bill.csv"
    own.write_text("parts: {gpu: {dollars: {low: 1, typical: 2, high: 3}}}\n", "utf-8")
    code, printed, _ = run(capsys, "ring:gpus=4", "--parts", own, "--out", out, "--json")
    told = json.loads(printed)

    assert code == 0
    assert told["dollars"][1] == 4 * 2 + 4 * 150
    assert told["cables"] == {"copper": 4}
    assert out.read_text("utf-8").startswith("part,title,group,count")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "bill.pdf"], "--out bill.pdf is neither CSV nor XLSX"),
        (["--parts", "none.yaml"], "none.yaml cannot be read"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(capsys, arguments, sentence):
    code, _, said = run(capsys, "ring:gpus=4", *arguments)

    assert code == 2
    assert sentence in said
    assert said.count("\n") == 1
