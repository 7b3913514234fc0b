"""Rows of the tables and the nouns that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.sql import Select

from ccl.collective import CollectiveKind, made_of
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.relabelling import Relabelling
from ccl.result import Result, Status, Stop
from ccl.symmetry.canonical import Canonical, canonical
from formulations.analyses.comparison.asked import resized
from formulations.campaigns.catalog.entry import Entry, options_in, options_text
from formulations.campaigns.catalog.packed import pack, problem_bytes, problem_in, unpack
from formulations.campaigns.catalog.questions import asked_by, exact, in_parts, parts_of, size_of
from formulations.campaigns.catalog.tables import PLANS, QUESTIONS

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
        """Return the problem at `size` bytes, with every chunk in `parts` parts."""
        problem = replace(self.problem, collective=resized(self.problem.collective, size))
        return in_parts(problem, parts)


def listed() -> Select[Any]:
    """Return what asks for lines, without the plans themselves."""
    nbytes = func.length(PLANS.c.content).label("nbytes")
    return select(*_BRIEF, nbytes, *_ABOUT).join(QUESTIONS)


def whole() -> Select[Any]:
    """Return what asks for plans with their problems."""
    more = (PLANS.c.content, QUESTIONS.c.content.label("problem"), QUESTIONS.c.places)
    form = (QUESTIONS.c.digest, QUESTIONS.c.family)
    return listed().add_columns(*more, *form)


def entry_of(row: Line) -> Entry:
    """Return what a row of `listed` or `whole` says."""
    return Entry(
        number=row.id,
        cluster=row.cluster,
        kind=cast(CollectiveKind, row.kind),
        ranks=row.ranks,
        chunks=row.chunks * row.parts,
        whole=bool(row.whole),
        root=row.root,
        size=row.size,
        formulation=row.formulation,
        options=options_in(row.options),
        version=row.version,
        makespan=row.makespan,
        bound=row.bound,
        whole_bound=row.whole_bound,
        status=Status(row.status),
        chunk=row.chunk,
        stop=Stop[row.stop],
        found_by=row.found_by,
        solve_time=row.solve_time,
        given=row.given,
        kept=row.kept,
        nbytes=row.nbytes,
    )


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
    onto = Relabelling.between(source, target, known=known.form, asked=form)
    return unpack(row.content, onto)


def faults_in(row: Line) -> list[str]:
    """Say what is wrong with the plan of a row of `whole`."""
    try:
        known = known_in(row)
        found = result_in(row, known.at(row.size, row.parts), known.form)
    except CclError as error:
        return [f"plan {row.id}: {error}"]
    if abs(found.makespan / row.makespan - 1) <= SAME:
        return []
    return [f"plan {row.id}: it is listed with {row.makespan:g} µs and takes {found.makespan:g} µs"]


def put(
    connection: Connection,
    result: Result,
    form: Canonical,
    *,
    given: float | None,
    version: str,
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
    onto = Relabelling.between(result.problem, source, known=form, asked=known.form)
    values = _values(result, given) | {"content": pack(result, None if onto.identical else onto)}
    if there is None:
        connection.execute(insert(PLANS).values(**key, **values))
    else:
        connection.execute(update(PLANS).where(*same).values(**values))
    return True


def _better(result: Result, there: Line) -> bool:
    """Whether a result takes less than what is there, or the same with a larger bound."""
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
    """Return the drawing that stands for a question; where there is none, this becomes it."""
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
    problem = asked_by(problem)
    collective = problem.collective
    chunks, root = made_of(collective) or (len(collective.chunks), 0)
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
