"""Rules for every test: no bug of ours is logged; in CI a skip must be announced here."""

import logging
import os

import pytest
from hypothesis import settings

ANNOUNCED_SKIPS: dict[str, str] = {
    "tests/interchange/running/test_running.py": "PyTorch, an extra, may not be had where CI runs",
    "tests/designer/queue/": "Celery is an extra, and not every Python here has a redis-server",
    "tests/widgets/test_pictures_pixels.py::test_a_webm_has": "PyAV is an extra",
}
"""Start of a test's id -> why it may be skipped in CI."""

# A machine that does other things as well is slow at times, and nothing here is about time. CI
# draws the same examples each time; who runs a test by hand draws new ones.
settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")


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
