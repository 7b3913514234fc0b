"""Programs run for real, one process per rank over loopback: start, meeting and outcome."""

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Literal

from ccl.errors import ProblemError
from interchange.programs import Program
from interchange.running.child import Fault, Job, Order, Outcome, refuse_missing, serve

Transport = Literal["sockets", "gloo"]
DType = Literal["int32", "float32"]

MOST_RANKS = 64
"""Processes of the operating system that are started at most."""

MOST_BYTES = 2**31
"""Of the buffers of all ranks together."""

WIDTH = 4
"""Bytes of an element."""


@dataclass(frozen=True)
class Ran:
    """What came of a run.

    Parameters
    ----------
    job
        What was run, and how.
    transport
        By which wires.
    outcomes
        Of each rank.
    """

    job: Job
    transport: Transport
    outcomes: tuple[Outcome, ...]

    @property
    def seconds(self) -> float:
        """From the first step of a rank to its last, of the slowest; without starting it."""
        return max(each.seconds for each in self.outcomes)

    @property
    def ok(self) -> bool:
        """Whether every rank has what it should."""
        return all(not (each.wrong or each.library or each.fault) for each in self.outcomes)

    @property
    def compared(self) -> bool:
        """Whether the library's own collective was compared with."""
        return any(each.library is not None for each in self.outcomes)

    @property
    def deviation(self) -> float:
        """Largest relative difference of a sum from the exact one."""
        return max(each.deviation for each in self.outcomes)

    def sentences(self) -> list[str]:
        """Say what is wrong, rank by rank."""
        told = []
        for each in self.outcomes:
            if each.fault:
                told.append(f"rank {each.rank}: {each.fault}")
            elif each.wrong:
                told.append(
                    f"rank {each.rank}: {each.wrong:,} elements are not what they should be"
                )
            elif each.library:
                told.append(
                    f"rank {each.rank}: {each.library:,} elements differ from what "
                    f"{self.transport}'s own {self.job.program.collective} gives"
                )
        return told


def run(
    program: Program,
    *,
    transport: Transport = "sockets",
    dtype: DType = "int32",
    nbytes: float = 1e6,
    in_place: bool = False,
    seed: int = 0,
    time_limit: float = 60.0,
) -> Ran:
    """Run a program with one process per rank on this machine, and compare what each rank gets.

    Parameters
    ----------
    program
        What is run.
    transport
        ``sockets``, of ZeroMQ, or ``gloo``, of torch.distributed.
    dtype
        Type of the elements.
    nbytes
        Bytes of the larger buffer of a rank, made a whole number of elements per chunk.
    in_place
        Whether input and output overlap.
    seed
        Of the values.
    time_limit
        Seconds after which all processes are ended.

    Raises
    ------
    ProblemError
        If there are too many ranks or bytes, it may not be called in place, or torch is missing.
    """
    job = job_of(program, dtype=dtype, nbytes=nbytes, in_place=in_place, seed=seed)
    (ran,) = run_all([job], transport=transport, time_limit=time_limit)
    return ran


def job_of(
    program: Program,
    *,
    dtype: DType = "int32",
    nbytes: float = 1e6,
    in_place: bool = False,
    seed: int = 0,
) -> Job:
    """Return what is run; parameters and errors as `run`."""
    elements = max(1, round(nbytes / WIDTH / program.chunks_per_loop))
    _refuse(program, elements, in_place=in_place)
    return Job(program, dtype, elements, in_place, seed)


def run_all(
    jobs: Sequence[Job], *, transport: Transport = "sockets", time_limit: float = 60.0
) -> tuple[Ran, ...]:
    """Run programs of as many ranks one after the other in the same processes; errors as `run`."""
    if transport == "gloo":
        refuse_missing()
    ranks = len(jobs[0].program.ranks)
    orders = [Order(rank, ranks, transport, tuple(jobs)) for rank in range(ranks)]
    told = _Processes(orders, time_limit).run()
    found = []
    for number, job in enumerate(jobs):
        outcomes = tuple(
            Outcome(rank, fault=word.words) if isinstance(word, Fault) else word[number]
            for rank, word in enumerate(told)
        )
        found.append(Ran(job, transport, outcomes))
    return tuple(found)


def _refuse(program: Program, elements: int, *, in_place: bool) -> None:
    ranks = len(program.ranks)
    if ranks > MOST_RANKS:
        raise ProblemError(
            f"{program.name} has {ranks} ranks, and at most {MOST_RANKS} processes are started; "
            "execute it instead"
        )
    chunks = sum(2 * each.input + 2 * each.output + each.scratch for each in program.ranks)
    if chunks * elements * WIDTH > MOST_BYTES:
        raise ProblemError(
            f"the buffers of {program.name} would take {chunks * elements * WIDTH:,} bytes; "
            f"ask for a smaller size, at most {MOST_BYTES:,} bytes in all"
        )
    if not (program.in_place if in_place else program.out_of_place):
        way = "in place" if in_place else "out of place"
        raise ProblemError(f"{program.name} is not for calls {way}")


class _Processes:
    """The ranks as processes; all are ended, whatever happens."""

    def __init__(self, orders: list[Order], time_limit: float) -> None:
        self._until = time.monotonic() + time_limit
        self._limit = time_limit
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._processes = []
        for order in orders:
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(there, order), daemon=True)
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)

    def run(self) -> list[list[Outcome] | Fault]:
        """Let the ranks meet and return what each says at the end."""
        try:
            addresses = self._hear()
            if not _failed(addresses):
                self._tell(addresses)
                told = self._hear()
                if not _failed(told):
                    self._tell(None)
                    for process in self._processes:
                        process.join(max(0.1, self._until - time.monotonic()))
                return told
            return addresses
        finally:
            for process in self._processes:
                process.kill()
                process.join()
            for pipe in self._pipes:
                pipe.close()

    def _tell(self, word: Any) -> None:
        for pipe in self._pipes:
            pipe.send(word)

    def _hear(self) -> list[Any]:
        """Return a word of every rank; of one that says nothing in time, or dies, that."""
        heard: dict[int, Any] = {}
        rank_of = {id(pipe): rank for rank, pipe in enumerate(self._pipes)}
        while len(heard) < len(self._pipes):
            left = self._until - time.monotonic()
            silent = [pipe for rank, pipe in enumerate(self._pipes) if rank not in heard]
            ready = wait(silent, timeout=max(0.0, left))
            for each in ready:
                rank = rank_of[id(each)]
                try:
                    heard[rank] = self._pipes[rank].recv()
                except (EOFError, ConnectionResetError):
                    heard[rank] = Fault("its process died")
            failed = _failed(list(heard.values()))
            if failed or (not ready and left <= 0):
                why = "another rank failed" if failed else f"not done after {self._limit:g} s"
                for rank in range(len(self._pipes)):
                    heard.setdefault(rank, Fault(why))
        return [heard[rank] for rank in range(len(self._pipes))]


def _failed(words: list[Any]) -> bool:
    """Say whether a rank, or one of its jobs, went wrong."""
    return any(
        isinstance(word, Fault) or (isinstance(word, list) and any(each.fault for each in word))
        for word in words
    )
