"""Programs run for real: one process of the operating system per rank, over loopback."""

from interchange.running.parent import Ran, job_of, run, run_all

__all__ = ["Ran", "job_of", "run", "run_all"]
