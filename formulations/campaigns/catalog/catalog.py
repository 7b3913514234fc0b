"""Solved plans in a file: found again on every isomorphic cluster, and verified each time.

Rows of the tables stand for the nouns of the first half. Plans are carried elsewhere as JSON lines,
a result of ``topoloom/1`` each.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

import msgspec
import numpy as np
import platformdirs
from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.sql import Select

from ccl import __version__
from ccl.collective import find_arguments
from ccl.errors import CclError, FormatError
from ccl.options import make_options, option_fields, plain
from ccl.problem import Problem
from ccl.result import Result, Status, Stop
from ccl.serialization.topoloom import result_from_json, result_to_json, shaped
from ccl.symmetry.canonical import Canonical, canonical
from ccl.topology import Topology
from formulations.analyses.comparison.table import resized
from formulations.campaigns.catalog.relabelling import (
    Relabelling,
    pack,
    problem_bytes,
    problem_in,
    unpack,
)
from formulations.campaigns.catalog.tables import (
    PLANS,
    QUESTIONS,
    described,
    exact,
    form_of,
    in_parts,
    opened,
    parts_of,
    requested_by,
    size_of,
    writing,
)
from formulations.campaigns.catalog.tuner import Entry, given_to, options_in, options_text
from formulations.core.registry import formulation as formulation_called

SAME = 1e-9
"""Times within this share of each other are the same."""

Line = Row[*tuple[Any, ...]]
"""What a query returns."""

_BRIEF = [each for each in PLANS.c if each.name != "content"]
_ABOUT = [QUESTIONS.c[name] for name in ("cluster", "kind", "ranks", "chunks", "root", "whole")]


@dataclass(frozen=True)
class Known:
    """A question that a catalog knows: one drawing of its problem, and its canonical form."""

    number: int
    problem: Problem
    form: Canonical

    def at(self, size: float, parts: int) -> Problem:
        """Return the problem at `size` bytes, with every chunk in `parts` parts (`parts_of`)."""
        problem = replace(self.problem, collective=resized(self.problem.collective, size))
        return in_parts(problem, parts)


def listed() -> Select[Any]:
    """Return the query for lines, without the plans themselves."""
    nbytes = func.length(PLANS.c.content).label("nbytes")
    return select(*_BRIEF, nbytes, *_ABOUT).join(QUESTIONS)


def whole() -> Select[Any]:
    """Return the query for plans with their problems."""
    more = (PLANS.c.content, QUESTIONS.c.content.label("problem"), QUESTIONS.c.places)
    form = (QUESTIONS.c.digest, QUESTIONS.c.family)
    return listed().add_columns(*more, *form)


def entry_of(row: Line) -> Entry:
    """Return what a row of `listed` or `whole` says."""
    read = {
        "number": row.id,
        "chunks": row.chunks * row.parts if row.parts > 0 else -row.parts,
        "whole": bool(row.whole),
        "options": options_in(row.options),
        "status": Status(row.status),
        "stop": Stop[row.stop],
    }
    plain = {each.name: getattr(row, each.name) for each in fields(Entry) if each.name not in read}
    return Entry(**plain, **read)


def known_in(row: Line) -> Known:
    """Return the question of a row of `whole`, in its own names."""
    order = np.frombuffer(row.places, dtype="<i4").astype(np.int64)
    return Known(row.question, problem_in(row.problem), Canonical(row.digest, row.family, order))


def result_in(row: Line, problem: Problem, form: Canonical) -> Result:
    """Return the plan of a row of `whole` as one of `problem`, verified and replayed.

    Where chunks are automatic it answers the problem in as many parts as it was found for.

    Raises
    ------
    CclError
        If it is damaged, breaks a rule or beats its bound.
    """
    known = known_in(row)
    source, target = known.at(row.size, row.parts), in_parts(problem, row.parts)
    onto = Relabelling.between(source, target, known=known.form, requested=form)
    return unpack(row.content, onto)


def faults_in(row: Line) -> list[str]:
    """Describe what is wrong with the plan of a row of `whole`."""
    try:
        known = known_in(row)
        found = result_in(row, known.at(row.size, row.parts), known.form)
    except CclError as error:
        return [f"plan {row.id}: {error}"]
    if abs(found.makespan / row.makespan - 1) <= SAME:
        return []
    return [f"plan {row.id}: it is listed with {row.makespan:g} µs and takes {found.makespan:g} µs"]


def put(
    connection: Connection, result: Result, form: Canonical, *, given: float | None, version: str
) -> bool:
    """Write a result, within a transaction that may write; return whether it is new or better."""
    known = _known(connection, result.problem, form)
    key = {
        "question": known.number,
        "size": size_of(result.problem),
        "formulation": result.formulation,
        "options": options_text(result.options, exact=exact(result.problem.topology)),
        "version": version,
    }
    same = [PLANS.c[name] == value for name, value in key.items()]
    there = connection.execute(
        select(
            PLANS.c.id, PLANS.c.makespan, PLANS.c.bound, PLANS.c.whole_bound, PLANS.c.given
        ).where(*same)
    ).first()
    if there is not None and not _better(result, there):
        longer = None if None in (given, there.given) else max(given or 0.0, there.given)
        if longer != there.given:
            connection.execute(update(PLANS).where(*same).values(given=longer))
        return False
    source = known.at(result.problem.collective.size, parts_of(result.problem))
    onto = Relabelling.between(result.problem, source, known=form, requested=known.form)
    values = _values(result, given) | {"content": pack(result, None if onto.identical else onto)}
    if there is None:
        connection.execute(insert(PLANS).values(**key, **values))
    else:
        connection.execute(update(PLANS).where(*same).values(**values))
    return True


def _better(result: Result, there: Line) -> bool:
    """Return whether a result takes less than what is there, or the same with a larger bound."""
    if result.makespan < there.makespan * (1 - SAME):
        return True
    if result.makespan > there.makespan * (1 + SAME):
        return False
    pairs = ((result.bound.makespan, there.bound), (_whole_bound(result), there.whole_bound))
    return any((new or 0.0) > (old or 0.0) * (1 + SAME) for new, old in pairs)


def _whole_bound(result: Result) -> float | None:
    return None if result.whole_bound is None else result.whole_bound.makespan


def _values(result: Result, given: float | None) -> dict[str, Any]:
    return {
        "makespan": result.makespan,
        "parts": parts_of(result.problem),
        "bound": result.bound.makespan,
        "whole_bound": _whole_bound(result),
        "status": str(result.status),
        "chunk": result.problem.collective.chunk_size,
        "stop": result.stop.name,
        "found_by": result.found_by,
        "solve_time": result.solve_time,
        "given": given,
        "kept": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
    }


def _known(connection: Connection, problem: Problem, form: Canonical) -> Known:
    """Return the drawing that stands for a question; if it has no drawing yet, this becomes it."""
    row = connection.execute(
        select(
            QUESTIONS.c.id.label("question"),
            QUESTIONS.c.content.label("problem"),
            QUESTIONS.c.places,
            QUESTIONS.c.digest,
            QUESTIONS.c.family,
        ).where(QUESTIONS.c.digest == form.digest)
    ).first()
    if row is not None:
        return known_in(row)
    problem = requested_by(problem)
    collective = problem.collective
    chunks, root = find_arguments(collective) or (len(collective.chunks), 0)
    made = connection.execute(
        insert(QUESTIONS).values(
            digest=form.digest,
            family=form.family,
            topology=canonical(problem.topology).digest,
            cluster=problem.topology.name,
            kind=collective.kind,
            ranks=collective.ranks,
            chunks=chunks,
            root=root,
            whole=collective.whole,
            content=problem_bytes(problem),
            places=form.order.astype("<i4").tobytes(),
        )
    )
    (number,) = made.inserted_primary_key or (0,)
    return Known(number, problem, form)


log = logging.getLogger(__name__)


def usual_path() -> Path:
    """Return where the catalog of a user lies unless another path is named."""
    return platformdirs.user_data_path("topoloom") / "catalog.sqlite"


class Catalog:
    """Solved plans in an SQLite file; see `formulations.campaigns.catalog`.

    Parameters
    ----------
    path
        Of the file, which is created if missing; by default `usual_path`.

    Raises
    ------
    CatalogError
        If it cannot be opened or is no catalog.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = usual_path() if path is None else Path(path)
        self._engine = opened(self.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that reads; errors as `described`."""
        with described(self.path), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection that may write, all of the block or nothing; errors as `described`."""
        with described(self.path), writing(self._engine) as connection:
            yield connection

    def keep(self, result: Result, *, time_limit: float | None = None) -> bool:
        """Keep a result; return whether it is new, or better than what was there.

        When this returns, the plan is on disk. Of one question, size, formulation, options and
        version there is one plan: the one of the least makespan or, of the same, that with the
        largest bound.

        Parameters
        ----------
        result
            What to keep.
        time_limit
            Seconds that its solve was given.
        """
        return self.keep_all([result], time_limit=time_limit) == 1

    def keep_all(
        self,
        results: Iterable[Result],
        *,
        time_limit: float | None = None,
        version: str = __version__,
    ) -> int:
        """Keep several results at once, all or, when it is cut off, none; return how many are new.

        Parameters
        ----------
        results, time_limit
            As for `keep`.
        version
            Of the Topoloom that has found them.
        """
        pairs = [(each, form_of(each.problem)) for each in results]
        with self.writing() as connection:
            return sum(
                put(connection, each, form, given=given_to(each, time_limit), version=version)
                for each, form in pairs
            )

    def find(
        self,
        problem: Problem,
        formulation: str | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        enough: bool = False,
    ) -> Result | None:
        """Return a stored plan of a problem or of one isomorphic to it, verified and replayed anew.

        Parameters
        ----------
        problem
            The problem; names and the order of devices do not matter. Where its chunks are
            automatic its bytes are requested, and what is found may answer it in equal parts.
        formulation
            Only of this one, by this version of Topoloom or proved; None takes the best of all.
        options
            Of the formulation; what is left out has its default.
        time_limit, gap, enough
            With `enough` only plans to which solving with these limits could not add
            (`Entry.answers`).

        Returns
        -------
            The best one, or None. A plan that no longer verifies is dropped, and the log says so.

        Raises
        ------
        ProblemError
            If there is no such formulation or option.
        """
        wanted = self._wanted(problem, formulation, options)
        form = form_of(problem)
        with self.reading() as connection:
            rows = connection.execute(
                wanted.where(QUESTIONS.c.digest == form.digest, PLANS.c.size == size_of(problem))
            ).all()
        for row in rows:
            entry = entry_of(row)
            if enough and not entry.answers(time_limit=time_limit, gap=gap):
                continue
            found = self._loaded(row, entry, problem, form)
            if found is not None:
                return found
        return None

    def best(self, problem: Problem) -> Result | None:
        """Return the best stored plan of a problem, whatever found it; see `find`."""
        return self.find(problem)

    def entries(
        self,
        topology: Topology | None = None,
        *,
        kind: str | None = None,
        formulation: str | None = None,
    ) -> tuple[Entry, ...]:
        """List what is stored, by cluster, collective, size and makespan.

        Parameters
        ----------
        topology
            Only of this cluster or one isomorphic to it.
        kind, formulation
            Only of this collective or formulation.
        """
        wanted = listed().order_by(
            QUESTIONS.c.cluster, QUESTIONS.c.kind, PLANS.c.size, PLANS.c.makespan, PLANS.c.id
        )
        if topology is not None:
            wanted = wanted.where(QUESTIONS.c.topology == canonical(topology).digest)
        if kind is not None:
            wanted = wanted.where(QUESTIONS.c.kind == kind)
        if formulation is not None:
            wanted = wanted.where(PLANS.c.formulation == formulation)
        with self.reading() as connection:
            return tuple(map(entry_of, connection.execute(wanted)))

    def family(self, problem: Problem) -> tuple[Entry, ...]:
        """List what is stored of a collective on a cluster: every size and number of chunks."""
        wanted = listed().where(QUESTIONS.c.family == form_of(problem).family)
        with self.reading() as connection:
            return tuple(map(entry_of, connection.execute(wanted.order_by(PLANS.c.id))))

    def load(self, entry: Entry | int, problem: Problem | None = None) -> Result | None:
        """Return a stored plan, verified and replayed anew; None if it is gone or dropped.

        Parameters
        ----------
        entry
            It, or its number.
        problem
            The problem to relabel it onto, isomorphic to its own and of its size, whether its
            chunks are fixed or not; by default its own, on the cluster that it was first stored
            for.
        """
        number = entry if isinstance(entry, int) else entry.number
        with self.reading() as connection:
            row = connection.execute(whole().where(PLANS.c.id == number)).first()
        if row is None:
            return None
        if problem is None:
            known = known_in(row)
            own = known.at(row.size, row.parts)
            return self._loaded(row, entry_of(row), own, known.form)
        kept = replace(problem.collective, whole=bool(row.whole))
        problem = replace(problem, collective=kept)
        return self._loaded(row, entry_of(row), problem, form_of(problem))

    def count(self) -> int:
        """Return how many plans there are."""
        with self.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(PLANS)).scalar_one())

    def forget(self, entries: Iterable[Entry | int]) -> int:
        """Remove plans; return how many were there."""
        numbers = [each if isinstance(each, int) else each.number for each in entries]
        with self.writing() as connection:
            gone = sum(
                connection.execute(delete(PLANS).where(PLANS.c.id == number)).rowcount
                for number in numbers
            )
            used = select(PLANS.c.question)
            connection.execute(delete(QUESTIONS).where(QUESTIONS.c.id.not_in(used)))
        return gone

    def faults(self) -> tuple[str, ...]:
        """Check the file and verify every plan anew; say what is wrong with either."""
        with self.reading() as connection:
            said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            numbers = connection.execute(select(PLANS.c.id)).scalars().all()
        found = [f"the file: {each}" for each in said if each != "ok"]
        for number in numbers:
            with self.reading() as connection:
                row = connection.execute(whole().where(PLANS.c.id == number)).first()
            if row is not None:
                found += faults_in(row)
        return tuple(found)

    def _wanted(
        self, problem: Problem, formulation: str | None, options: Mapping[str, Any] | None
    ) -> Select[Any]:
        """Return the query for plans, best first."""
        by_makespan = whole().order_by(PLANS.c.makespan, PLANS.c.bound.desc(), PLANS.c.id)
        if formulation is None:
            return by_makespan
        chosen = formulation_called(formulation)
        made = make_options(chosen.options, options or {})
        full = plain({row.name: getattr(made, row.name) for row in option_fields(chosen.options)})
        proved = (PLANS.c.status == str(Status.OPTIMAL)) | (PLANS.c.stop == Stop.PROVED.name)
        return by_makespan.where(
            PLANS.c.formulation == chosen.name,
            PLANS.c.options == options_text(full, exact=exact(problem.topology)),
            (PLANS.c.version == __version__) | proved,
        )

    def _loaded(self, row: Line, entry: Entry, problem: Problem, form: Canonical) -> Result | None:
        """Return what a row holds on a problem; drop it if it does not verify."""
        try:
            found = result_in(row, problem, form)
        except CclError as error:
            self.forget([entry])
            log.warning(
                "catalog %s: plan %d, %s on %s by %s, is dropped: %s",
                self.path, entry.number, entry.kind, entry.cluster, entry.formulation, error,
            )  # fmt: skip
            return None
        where = "" if found.problem.topology.name == entry.cluster else f" for {entry.cluster}"
        said = (
            f"from the catalog: solved{where} in {entry.solve_time:.3g} s by Topoloom "
            f"{entry.version}, kept on {entry.kept} UTC"
        )
        return replace(found, log=(*found.log, said))


FORMAT = "topoloom-catalog/1"

MOST_BYTES = 256_000_000
"""Of a line; a longer one is no plan of ours."""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["topoloom-catalog/1"]
    version: str
    given: float | None
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Read:
    """What reading lines has come to.

    Parameters
    ----------
    stored, known
        Plans that are new or better than those that were there, and others.
    refused
        Why lines were not taken, a sentence each.
    """

    stored: int
    known: int
    refused: tuple[str, ...]


def write_lines(catalog: Catalog, path: Path, entries: Iterable[Entry]) -> int:
    """Write plans, each verified once more; return how many.

    Raises
    ------
    FormatError
        If the file cannot be written.
    """
    many = 0
    try:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for entry in entries:
                result = catalog.load(entry)
                if result is None:
                    continue
                value = {
                    "format": FORMAT,
                    "version": entry.version,
                    "given": entry.given,
                    # Its last sentence is about the catalog that it comes from.
                    "result": result_to_json(result) | {"log": list(result.log[:-1])},
                }
                file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
                many += 1
    except OSError as error:
        raise FormatError(f"{path} cannot be written: {error.strerror}") from error
    return many


def read_lines(catalog: Catalog, path: Path) -> Read:
    """Keep the plans of a file, each verified and replayed first.

    A malformed line, or one whose plan does not verify, is reported and the others are stored.

    Raises
    ------
    FormatError
        If the file cannot be read.
    """
    stored, known, refused = 0, 0, []
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(_lines(file), start=1):
                try:
                    new = _keep(catalog, line)
                except CclError as error:
                    refused.append(f"{path.name}, line {number}: {error}")
                else:
                    stored, known = stored + new, known + (not new)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}"
        ) from error
    return Read(stored, known, tuple(refused))


def _lines(file: IO[str]) -> Iterator[str]:
    while line := file.readline(MOST_BYTES):
        yield line


def _keep(catalog: Catalog, line: str) -> bool:
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise FormatError(f"it is no JSON: {error}") from error
    read = shaped(value, _Line, "line")
    result = result_from_json(read.result)
    return catalog.keep_all([result], time_limit=read.given, version=read.version) == 1
