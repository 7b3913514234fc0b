"""What is installed is what was locked, and its licences are written down."""

import json

import pytest

from tools import audit


def report(name, digest, version="1.0"):
    """Return a report of pip on one file."""
    return {
        "install": [
            {
                "metadata": {"name": "thing", "version": version},
                "download_info": {
                    "url": f"file:///wheels/{name}",
                    "archive_info": {"hashes": {"sha256": digest}},
                },
            },
            {
                "metadata": {"name": "ours", "version": "1.0"},
                "download_info": {"url": "file:///here", "dir_info": {"editable": True}},
            },
        ]
    }


LOCKED = {"thing-1.0-py3-none-any.whl": "aa"}


@pytest.mark.parametrize(
    ("name", "digest", "counts"),
    [
        ("thing-1.0-py3-none-any.whl", "aa", (1, 0, 0)),
        ("thing-1.0-py3-none-any.whl", "bb", (0, 1, 0)),
        ("thing-1.0-cp312-win_amd64.whl", "aa", (0, 0, 1)),
    ],
)
def test_a_file_is_right_wrong_or_unknown(name, digest, counts, capsys):
    assert audit.check_files([report(name, digest)], LOCKED) == counts
    assert (name in capsys.readouterr().out) is (counts != (1, 0, 0))


def test_local_builds_are_not_locked():
    """Of ``2.13.0+cpu`` each machine has another file."""
    assert audit.check_files([report("thing-1.0+cpu.whl", "aa", version="1.0+cpu")], {}) == (
        0,
        0,
        0,
    )


def test_another_file_fails_the_command(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(report("thing-1.0-py3-none-any.whl", "bb")))
    monkeypatch.setattr(audit, "read_hashes", lambda: LOCKED)
    monkeypatch.setattr("sys.argv", ["audit", "files", str(path)])

    assert audit.main() == 1


def test_every_pin_has_a_hash():
    """Files are named after their packages; torch is a build of each machine."""
    files = {audit.plain(name.split("-")[0]) for name in audit.read_hashes()}
    lines = audit.LOCK.read_text("utf-8").splitlines()
    pins = {line.partition("==")[0] for line in lines if not line.startswith("#")}

    assert pins - files <= {"torch"}
    assert files <= pins


def test_the_table_of_licences_is_true():
    assert audit.check_licences(audit.licences(), audit.read_table()) == []


def test_another_licence_is_told():
    assert audit.check_licences({"numpy": "GPL"}, {"numpy": "BSD", "gone": "MIT"}) == [
        "gone has a row and is not pinned",
        "numpy is under GPL, and its row says BSD",
    ]
