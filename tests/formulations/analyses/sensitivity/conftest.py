"""Rates are proved however slow the machine is."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def patience():
    """Give the searches for trees, of a second or two when nothing runs beside, a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formulations.analyses.best_rate.PATIENCE", 60.0)
        patch.setattr("formulations.analyses.sensitivity.changes.PATIENCE", 60.0)
        yield
