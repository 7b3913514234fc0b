"""Rules for every test: no bug of ours is logged; in CI a skip must be announced here."""

import logging
import os

import pytest
from hypothesis import settings

ANNOUNCED_SKIPS: dict[str, str] = {
    "tests/interchange/running/test_running.py": "PyTorch, an extra, may not be had where CI runs",
    "tests/widgets/test_pictures_pixels.py::test_a_webm_has": "PyAV is an extra",
}
"""Start of a test's id -> why it may be skipped in CI."""

# A machine that does other things as well is slow at times, and nothing here is about time. CI
# draws the same examples each time; who runs a test by hand draws new ones.
settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")


def pytest_addoption(parser):
    """Offer every case of every test; else a cover of the large families, and nothing slow."""
    parser.addoption("--all", action="store_true", help="also slow tests, every case of families")


def pytest_collection_modifyitems(config, items):
    """Leave out what is slow, and all but a cover of the cases of a family, unless all are wanted.

    A family says how many of its cases a cover has; they lie evenly among all.
    """
    if config.getoption("--all"):
        return
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("cover"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    out = {item for item in items if item.get_closest_marker("slow")}
    for cases in families.values():
        many = cases[0].get_closest_marker("cover").args[0]
        step = max(1.0, len(cases) / many)
        out |= set(cases) - {cases[int(place * step)] for place in range(min(many, len(cases)))}
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


class Bugs(logging.Handler):
    """Keeps what is logged as a bug: a bound that a plan beats, a plan that breaks a rule."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what a record says, if it is one."""
        told = record.getMessage()
        if told.startswith("bug:"):
            self.found.append(told)


@pytest.fixture(autouse=True)
def no_bug_is_logged(request):
    """Fail a test in which we log a bug of ours, unless it is about that."""
    bugs, log = Bugs(), logging.getLogger("topoloom")
    log.addHandler(bugs)
    yield
    log.removeHandler(bugs)
    if request.node.get_closest_marker("logs_a_bug") is None:
        assert not bugs.found


def unannounced(nodeid: str) -> bool:
    """Say whether a skip of this test is a failure."""
    return bool(os.environ.get("CI")) and not nodeid.startswith(tuple(ANNOUNCED_SKIPS))


def refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skipped report into a failed one that says where it was skipped and why."""
    where = report.longrepr
    reason = f"{where[0]}:{where[1]}: {where[2]}" if isinstance(where, tuple) else str(where)
    report.outcome = "failed"
    report.longrepr = f"skipped without being announced in tests/conftest.py: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Watch the skips of single tests; an expected failure is none."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and unannounced(item.nodeid):
        refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Watch the skips of whole modules."""
    report = yield
    if report.skipped and unannounced(collector.nodeid):
        refuse(report)
    return report
