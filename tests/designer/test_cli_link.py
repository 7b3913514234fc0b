"""`topoloom link` prints what `import`, `bound` and the others open again."""

import json

import pytest

from ccl.serialization.documents import document, read_document, write_document
from designer.cli import main
from gallery import open_cluster
from interchange.formats.own.fragment import share_of


def told(capsys, *arguments):
    """Return the exit code, what was answered and what was remarked."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    output = capsys.readouterr()
    return left.value.code, output.out.strip(), output.err.strip()


def test_a_link_is_imported_again(capsys, tmp_path):
    code, link, _ = told(capsys, "link", "dgx-1v", "--at", "http://box:8050/")
    assert code == 0
    assert link.startswith("http://box:8050/#t=")

    out = tmp_path / "box.json"
    code, _, remarks = told(capsys, "import", link, "--out", str(out))
    assert code == 0
    assert "taken: topology of a link: DGX-1V, 32 links" in remarks
    assert read_document(out).topology == open_cluster("dgx-1v")


def test_a_result_becomes_its_problem_and_how_it_was_solved(capsys, tmp_path, result):
    """Into each GPU of the ring come 3 MB over 100 GB/s: 30 µs, and 0.5 of latency."""
    file = tmp_path / "result.json"
    write_document(file, document(result))
    code, link, remarks = told(capsys, "link", str(file))
    share = share_of(link)

    assert code == 0
    assert remarks == "not kept: the plan; it is solved again"
    assert share.document.problem == result.problem
    assert share.solving.formulation == "te-ccl-milp"

    code, answer, remarks = told(capsys, "bound", link, "--json")
    assert code == 0
    assert json.loads(answer)["bound_us"] == 30.5
    assert "the link also says how to solve it" in remarks


@pytest.mark.parametrize("command", ["import", "bound", "design"])
def test_half_a_link_is_one_sentence(capsys, command):
    _, link, _ = told(capsys, "link", "dgx-1v")
    code, answer, remarks = told(capsys, command, link[: len(link) // 2])

    assert (code, answer) == (2, "")
    assert remarks == "topoloom: the link: it was cut or changed on its way; copy it again, whole"


def test_a_cluster_that_no_link_holds_says_so(capsys):
    code, answer, remarks = told(capsys, "link", "dgx-a100:hosts=200")

    assert (code, answer) == (2, "")
    assert "has 6,416 links and needs a link of" in remarks
    assert "share it as a file" in remarks
