"""Errors that Topoloom raises on purpose; the user sees their text unchanged.

A text is one sentence: where, what, the value with its unit, what would be right. Anything else
that is raised is a bug and is shown and logged as one.
"""


class CclError(Exception):
    """The root: whoever shows errors to a user catches this and nothing else."""


class ProblemError(CclError):
    """A topology, a collective or their combination is not one that can be solved."""


class Unreachable(ProblemError):
    """A rank cannot be reached from those that have something for it."""


class FormatError(CclError):
    """A file or a text cannot be read; the message says where in it."""


class ScheduleError(CclError):
    """A plan breaks a rule.

    Parameters
    ----------
    message
        The sentence for the user.
    where
        The device, link or limit at which the rule is broken first.
    time
        When it is broken, in µs.
    epoch
        The same as an epoch, where the plan has epochs.
    """

    def __init__(
        self, message: str, *, where: str, time: float = 0.0, epoch: int | None = None
    ) -> None:
        super().__init__(message)
        self.where = where
        self.time = time
        self.epoch = epoch


class SolveError(CclError):
    """No plan came out of a solve."""


class Infeasible(SolveError):
    """No plan exists under the options given."""


class LimitReached(SolveError):
    """The time limit came before the first plan."""


class SolverMissing(SolveError):
    """The requested solver is not installed."""


class CatalogError(CclError):
    """A catalog cannot be opened, read or written."""
