"""Every notebook runs from top to bottom in a kernel of its own; lessons are built alike.

What a page says that no plan beats is in its cell with the tag `claims`: questions and µs by name.
Here `solve` without a method is asked each of them.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from tools.lessons import INDEX, NEEDS, NOTEBOOKS, entries, hardware, table, written

ROOT = Path(__file__).parents[2]
EVERY = sorted(NOTEBOOKS.glob("*.ipynb"))
LESSONS = sorted(NOTEBOOKS.glob("[0-9][0-9]-*.ipynb"))

LAST = 18
"""Number of the last lesson."""

MOST_WORDS = 110
"""Of a cell of text: one paragraph that a class reads before it looks up again."""

MOST_LINES = 28
"""Of a cell of code that is shown; one screen of a projector."""

SAID = "# A question: its code has the answer in it."
"""What is seen of a question that is folded; the tag `hide-input` folds it elsewhere."""

SAYS_BEST = r"\boptimal|no plan|nobody|at least|lower bound|best (?:plan|all-reduce|steady|rate)"
"""What only a proof allows to say."""

TRIED = """
from formulations import solve as _solve

for _said, (_asked, _least) in claims.items():
    _found = _solve(_asked, time_limit=5)
    assert _found.makespan >= _least * (1 - 1e-6), f"{_said}: {_found.makespan} < {_least}"
"""

CHOICES = {
    "02-ring-tree-halving": ["tree", "ring", "ring"],
    "08-bottleneck-cut": ["a box"],
    "10-fluid-to-chunks": [
        "8 chunks",
        "The conversion lets a switch take in a shard before it passes it on",
    ],
    "12-all-reduce": ["the exchange", "right, and no plan is faster"],
    "15-boxes-and-rails": [
        "about six times as long",
        "the rings with four, the stages with two",
        "the bytes of the stages, and no stop between them",
    ],
    "16-what-a-library-does": ["LL", "at 100 KB"],
    "18-which-network": [
        "no, as some of its cables are busier than others",
        "it takes the same on all five",
        "yes, as both are bought at the same prices",
        "nothing",
    ],
}
"""Which choices are right, in order. Pages compute them: one that turned around would not show."""

CHOSEN = """
from ipywidgets import RadioButtons as _Radio

_asked = [each for each in lesson._questions if isinstance(each.control, _Radio)]
for _each, _choice in zip(_asked, _choices, strict=True):
    _each.answer_with(_choice)
    assert _each.right, f"{_each.question}: not {_choice}"
"""

of_every_notebook = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
of_every_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def has_tag(cell, tag):
    return tag in cell.metadata.get("tags", ())


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def words(cell):
    """Return the words of a text; a table is looked at, not read."""
    lines = (line for line in cell.source.splitlines() if not line.startswith("|"))
    return [word for line in lines for word in line.split()]


def claims_of(notebook):
    return [cell for cell in code_of(notebook) if has_tag(cell, "claims")]


def is_hidden(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def solved(notebook):
    """Return code that solves each exercise: the solution, then what follows the reader's part.

    An exercise is one cell, whose first paragraph is the reader's.
    """
    cells = {cell.id: cell for cell in notebook.cells}
    for cell in notebook.cells:
        if has_tag(cell, "solution"):
            [solution] = re.findall(r"```python\n(.*?)```", cell.source, re.DOTALL)
            exercise = cells[cell.id.replace("solution", "solve")]
            _, rest = exercise.source.split("\n\n", 1)
            yield f"{solution}\n{rest}"


@of_every_notebook
@pytest.mark.cover(1)
def test_a_notebook_runs_its_claims_hold_and_its_solutions_solve_its_exercises(path, monkeypatch):
    """The exercises are open when it has run, and all solved when the solutions have, too."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = read(path)
    answers = list(solved(notebook))
    if answers:
        count = f"len(lesson._checks) == {len(answers)}"
        left = f"assert {count} and not any(lesson._checks.values()), lesson._checks"
        done = f"assert {count} and all(lesson._checks.values()), lesson._checks"
        notebook.cells += [nbformat.v4.new_code_cell(text) for text in (left, *answers, done)]
    if path.stem in CHOICES:
        chosen = f"_choices = {CHOICES[path.stem]!r}\n{CHOSEN}"
        notebook.cells.append(nbformat.v4.new_code_cell(chosen))
    if claims_of(notebook):
        notebook.cells.append(nbformat.v4.new_code_cell(TRIED))
    # Kernels that start at the same time take neither ports nor sockets from one another; the names
    # of sockets have to be short.
    with TemporaryDirectory() as folder:
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        NotebookClient(notebook, timeout=240, kernel_name="python3", config=config).execute()


@of_every_notebook
def test_a_notebook_is_kept_without_outputs(path):
    notebook = read(path)

    assert not any(cell.get("outputs") for cell in notebook.cells)
    assert not any(cell.get("execution_count") for cell in notebook.cells)
    assert "widgets" not in notebook.metadata
    assert notebook.metadata.kernelspec.name == "python3"


@of_every_notebook
def test_a_page_that_says_best_says_of_which_question(path):
    notebook = read(path)
    says = any(re.search(SAYS_BEST, cell.source) for cell in notebook.cells)

    assert says == bool(claims_of(notebook))
    assert all(is_hidden(cell) for cell in claims_of(notebook))


@of_every_notebook
def test_cells_have_readable_ids(path):
    ids = [cell.id for cell in read(path).cells]

    assert len(set(ids)) == len(ids)
    assert [each for each in ids if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", each)] == []


def test_there_are_18_lessons_in_order():
    assert [each.lesson for each in entries()] == list(range(1, LAST + 1))
    assert [int(path.name[:2]) for path in LESSONS] == list(range(1, LAST + 1))


def test_the_index_says_what_the_notebooks_say():
    """Title, goal and minutes, the map and the links; ``tools/lessons.py index`` writes them."""
    text = INDEX.read_text("utf-8")

    assert table() in text
    assert written(text) == text
    assert "| NVLink 4 | 0.35 | 450 | 2.22 | 158 | `dgx-h100:hosts=2` |" in hardware()


def test_the_index_plans_every_lesson():
    plan = INDEX.read_text("utf-8").split("## A course")[1].split("## ")[0]

    assert {int(number) for number in re.findall(r"\b\d+\b", plan)} >= set(range(1, LAST + 1))


@of_every_lesson
def test_a_lesson_begins_with_its_title_its_minutes_and_its_goals(path):
    notebook = read(path)
    told, head = notebook.metadata.topoloom, notebook.cells[0].source

    assert head.startswith(f"# {told.lesson} ")
    assert told.title in head.splitlines()[0]
    assert f"{told.minutes} minutes" in head
    assert 2 <= len(told.goals) <= 4
    assert all(f"- {goal}" in head for goal in told.goals)


@of_every_lesson
def test_a_lesson_says_on_which_lessons_it_builds(path):
    notebook = read(path)
    head = " ".join(notebook.cells[0].source.split())
    told = re.search(r"It builds on (.*?)[.:] ", head)

    numbers = re.findall(r"(?<!\w)\d+(?!\w)", told[1]) if told else []
    assert tuple(map(int, numbers)) == NEEDS.get(notebook.metadata.topoloom.lesson, ())


@of_every_lesson
def test_a_lesson_ends_alike(path):
    """What it said, what people believe that is not so, the score, and what to read."""
    notebook = read(path)
    short, beliefs, _, _, onwards = notebook.cells[-5:]
    lesson = notebook.metadata.topoloom.lesson

    ends = ["in-short", "not-so", "about-score", "score", "next"]
    assert [cell.id for cell in notebook.cells[-5:]] == ends
    assert short.source.startswith("**In short.**")
    assert len(re.findall(r"^- \*.*\.\* ", beliefs.source, re.MULTILINE)) >= 2
    assert onwards.source.startswith("## What to read next")
    assert lesson == LAST or f"({LESSONS[lesson].name})" in onwards.source


@of_every_lesson
def test_a_lesson_asks_breaks_and_keeps_score(path):
    notebook = read(path)
    code = code_of(notebook)
    asked = sum(len(re.findall(r"lesson\.(?:predict|choose)\(", cell.source)) for cell in code)
    checked = sum(cell.source.count("lesson.check(") for cell in code)

    assert 3 <= asked <= 7
    assert 2 <= checked <= 4
    assert [cell.id for cell in code].count("score") == 1
    assert sum("lesson.score()" in cell.source for cell in code) == 1
    assert any("break_a_send(" in cell.source or cell.id == "break" for cell in code)
    assert sum(has_tag(cell, "thumbnail") for cell in code) == 1


@of_every_lesson
def test_answers_of_a_lesson_are_folded(path):
    """The code of a question has the answer in it, and a solution is behind a click."""
    notebook = read(path)
    asking = [c for c in code_of(notebook) if re.search(r"lesson\.(predict|choose)\(", c.source)]
    solutions = [cell for cell in notebook.cells if has_tag(cell, "solution")]
    exercises = [cell for cell in code_of(notebook) if cell.id.startswith("solve-")]

    assert [cell.id for cell in asking if not is_hidden(cell)] == []
    assert [cell.id for cell in asking if not has_tag(cell, "hide-input")] == []
    assert [cell.id for cell in asking if not cell.source.startswith(SAID)] == []
    assert len(solutions) == len(exercises)
    assert all("<details>" in cell.source for cell in solutions)


@of_every_lesson
def test_a_lesson_has_open_questions_with_folded_hints(path):
    cells = [cell for cell in read(path).cells if cell.id.startswith("open-")]

    assert 2 <= len(cells) <= 3
    assert all("<details>\n<summary>A hint</summary>" in cell.source for cell in cells)


@of_every_lesson
def test_a_lesson_is_read_in_short_steps(path):
    notebook = read(path)
    text = [
        c for c in notebook.cells[1:] if c.cell_type == "markdown" and not has_tag(c, "solution")
    ]
    shown = [cell for cell in code_of(notebook) if not is_hidden(cell)]
    long_texts = [cell.id for cell in text if len(words(cell)) > MOST_WORDS]
    long_codes = [cell.id for cell in shown if len(cell.source.splitlines()) > MOST_LINES]

    assert (long_texts, long_codes) == ([], [])
