"""The lock names what is installed, and licences are written down."""

from tools import audit, packages

LOCK = """\
one==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
two==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:cc
"""


def test_the_lines_of_one_package_are_taken():
    assert packages.locked("one", LOCK).count("--hash") == 2
    assert packages.locked("two", LOCK).endswith("sha256:cc")


def test_uv_looks_where_pip_does():
    """The file of settings comes first, the environment last."""
    told = "global.extra-index-url='file:///a file:///b'\n:env:.find-links='/wheels'\n"

    assert packages.places(packages.pip_settings(told)) == [
        "--index-strategy=unsafe-best-match",
        *("--index", "file:///a", "--index", "file:///b", "--find-links", "/wheels"),
    ]


def test_every_pin_has_its_sums():
    text = packages.LOCK.read_text("utf-8")

    assert len(audit.pinned()) > 100
    assert all("--hash=sha256:" in packages.locked(name, text) for name in audit.pinned())


def test_the_table_of_licences_is_true():
    assert audit.check_licences(audit.licences(), audit.read_table()) == []


def test_another_licence_is_told():
    assert audit.check_licences({"numpy": "GPL"}, {"numpy": "BSD", "gone": "MIT"}) == [
        "gone has a row and is not pinned",
        "numpy is under GPL, and its row says BSD",
    ]
