"""A lesson's questions, its score, and sends that are broken."""

import ipywidgets
import pytest

import formulations
from ccl.collective import all_gather
from ccl.errors import ProblemError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.verify import verify
from gallery import open_cluster
from widgets import Lesson, curves, verdict
from widgets.lessons import CHANGES, BreakASend
from widgets.notebook.still import STILL, VIEW


@pytest.fixture(scope="module")
def ring_result():
    """An all-gather around a ring of four: twelve sends, all of them needed."""
    problem = Problem(open_cluster("ring:gpus=4"), all_gather(4, 4e6))
    return formulations.solve(problem, "ring")


def test_the_first_guess_counts_and_a_later_one_does_not():
    lesson = Lesson("alpha")
    question = lesson.predict("1 MB at 50 GB/s?", answer=20.0, unit="µs", reveal="1e6 / 5e4")
    assert lesson.text() == "alpha: 0 of 1 right, 1 not tried"

    question.answer_with(30.0)
    assert "30 µs is 50% more than it is" in question.verdict.value
    question.answer_with(20.5)

    assert question.right is False
    assert "Right" in question.verdict.value
    assert lesson.text() == "alpha: 0 of 1 right"
    assert "0 of 1 right" in lesson.score().value


def test_revealing_shows_the_view_once_and_blocks_nothing():
    made = []
    lesson = Lesson("alpha")

    def view():
        made.append(1)
        return ipywidgets.HTML("a picture")

    question = lesson.choose("Which?", ["ring", "tree"], answer="tree", reveal="why", show=view)
    question.check()
    assert "Choose one first" in question.verdict.value
    assert question.right is None, "no choice is no guess"
    assert not made
    question.reveal()
    question.reveal()

    assert made == [1]
    assert "why" in question.answer_box.children[0].value
    assert lesson.text() == "alpha: 0 of 1 right"


def test_a_choice_that_is_not_offered_is_a_mistake_of_the_lesson():
    with pytest.raises(ValueError, match="none of the choices"):
        Lesson("x").choose("Which?", ["ring"], answer="tree", reveal="")


def test_a_cell_that_is_run_again_asks_no_second_time_and_an_exercise_can_be_mended():
    lesson = Lesson("x")
    for _ in range(2):
        lesson.predict("How long?", answer=1.0, reveal="so")
    assert "not solved yet" in lesson.check("1", [], otherwise="add a link").value
    assert "is solved" in lesson.check("1", [1]).value

    assert lesson.text() == "x: 1 of 2 right, 1 not tried"


@pytest.mark.parametrize("way", CHANGES)
def test_the_verifier_finds_a_broken_send(ring_result, way):
    """The first send is passed on in epoch 1; the last brings what came in epoch 1, in epoch 2."""
    form = BreakASend(ring_result)
    form.way.value = way
    form.send.value = len(ring_result.plan.sends) - 1 if way == "send it at once" else 0
    form.verify()

    assert "<b>Found.</b>" in form.message.value


def test_what_is_not_broken_is_said_too(ring_result):
    """A send of the last epoch stays what it was when it is sent in the last epoch."""
    form = BreakASend(ring_result)
    last = len(ring_result.plan.sends) - 1
    form.send.value, form.way.value = last, "send it in the last epoch"
    form.verify()

    verify(ring_result.problem, form.broken)
    assert "does this already" in form.message.value


def test_a_saved_notebook_keeps_words():
    lesson = Lesson("x")
    asked = lesson.predict("How long does <b>1 MB</b> take?", answer=1.0, reveal="so")

    data, _ = asked._repr_mimebundle_()
    assert "Predict. How long does 1 MB take?" in data["text/plain"]
    assert {VIEW, STILL} <= set(data)
    data, _ = lesson.score()._repr_mimebundle_()
    assert data["text/plain"] == "Score. x: 0 of 1 right, 1 not tried"


def test_only_a_schedule_can_be_broken(ring_result):
    forest = formulations.solve(ring_result.problem, "forestcoll")
    assert not isinstance(forest.plan, Schedule)

    with pytest.raises(ProblemError, match="only a schedule"):
        Lesson("x").break_a_send(forest)


def test_a_schedule_of_a_problem_can_be_broken_without_a_result(ring_result):
    form = Lesson("x").break_a_send(ring_result.problem, ring_result.plan)
    form.verify()

    assert "<b>Found.</b>" in form.message.value


def test_a_verdict_says_what_is_wrong_or_that_a_plan_is_valid(ring_result):
    broken = BreakASend(ring_result).broken

    assert verdict(ring_result.problem, ring_result.plan) == "valid"
    assert verdict(ring_result.problem, broken) != "valid"


def test_a_formula_has_the_colour_of_its_line():
    figure = curves(
        {"ring": ([1, 10], [2, 3])}, formulas={"ring": ([1, 10], [2, 3])}, x="B", y="µs"
    )

    simulated, formula = figure.data
    assert simulated.line.color == formula.line.color
    assert formula.line.dash == "dash"


def test_bytes_are_written_with_units_and_few_values_all():
    """Thirteen sizes in three decades: too many to write all, round ones are; four numbers fit."""
    sizes = [1e3 * 10 ** (k / 4) for k in range(13)]
    figure = curves({"ring": (sizes, sizes)}, x="message, bytes", y="µs")
    written = list(figure.layout.xaxis.ticktext)
    assert len(written) < len(sizes)
    assert {"1 KB", "10 KB", "100 KB", "1 MB"} <= set(written)

    figure = curves({"ring": ([1, 2, 4, 8], [4, 3, 2, 2])}, x="chunks", y="µs")
    assert list(figure.layout.xaxis.ticktext) == ["1", "2", "4", "8"]


def test_only_the_axis_of_sizes_is_logarithmic_where_that_is_asked():
    """Shares that reach 0 have no place on a logarithmic axis."""
    figure = curves({"saved": ([1e3, 1e6], [0, 25])}, x="bytes", y="%", log="x")

    assert figure.layout.xaxis.type == "log"
    assert figure.layout.yaxis.type is None
