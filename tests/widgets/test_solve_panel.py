"""The form of the notebook: a real solve in its own process, as the kernel's loop runs it."""

import asyncio

import pytest

from ccl.collective import Chunk, Collective, all_gather, all_reduce, all_to_all, broadcast
from ccl.problem import Problem
from ccl.result import Status, Stop
from formulations import available, formulation, option_fields
from gallery import open_cluster
from tests.formulations.test_front import offered
from widgets import SolvePanel
from widgets.notebook import solve_panel
from widgets.notebook.solve_panel import option_row


class Solved:
    """A solve that has ended."""

    def __init__(self, result):
        self.found = result

    def __iter__(self):
        return iter(())

    def result(self):
        return self.found


def run(panel):
    """Press Solve and let the loop run until the solve has ended."""

    async def pressed():
        task = panel.solve()
        assert panel.solve() is None, "a second click starts nothing"
        await task

    asyncio.run(pressed())


def test_a_plan_with_fewer_sends_is_chosen_and_shown(monkeypatch):
    """A broadcast in k pieces takes (k + 1) / k * 20 µs over two links."""
    result = offered(1, 2, 8)
    panel = SolvePanel(result.problem)
    monkeypatch.setattr(solve_panel, "start", lambda *_args, **_options: Solved(result))
    run(panel)

    assert panel.front.layout.display is None
    assert [words.partition(":")[0] for words, _ in panel.front.options] == [
        "1 piece per shard",
        "2 pieces per shard",
        "8 pieces per shard",
    ]
    assert panel.result is result
    panel.front.value = 1
    assert panel.result is result.simpler[1]
    assert panel.canvas.scene["makespan"] == pytest.approx(30.0)
    assert ">30 µs, " in panel.message.value
    panel.front.value = 2
    assert panel.result is result


def test_one_plan_is_no_choice(monkeypatch):
    result = offered(8)
    panel = SolvePanel(result.problem)
    monkeypatch.setattr(solve_panel, "start", lambda *_args, **_options: Solved(result))
    run(panel)

    assert panel.front.layout.display == "none"


def test_solving_shows_the_plan_and_says_how_good_it_is():
    panel = SolvePanel(open_cluster("ring:gpus=4,alpha=0"))
    panel.size.value = "4MB"

    run(panel)

    assert panel.result.status is Status.OPTIMAL
    assert panel.canvas.scene["makespan"] == pytest.approx(panel.result.makespan)
    assert panel.gap_plot.course["points"][-1][1] == panel.result.makespan
    assert not panel.gap_plot.course["running"]
    assert "GB/s busbw" in panel.message.value
    assert not panel.solve_button.disabled
    assert panel.cancel_button.disabled


def test_the_rows_are_the_options_of_the_formulation():
    panel = SolvePanel(open_cluster("ring:gpus=4"))
    for each in available():
        panel.formulation.value = each.name
        shown = [row.field for row in panel.options.children]
        assert shown == list(option_fields(each.options))


def test_an_option_reaches_the_solve():
    panel = SolvePanel(open_cluster("ring:gpus=4"))
    panel.formulation.value = "te-ccl-milp"
    [row] = [row for row in panel.options.children if row.field.name == "epoch"]
    row.control.value = "slowest"

    run(panel)

    assert panel.result.options["epoch"] == "slowest"


@pytest.mark.parametrize(
    ("name", "value", "message"), [("size", "many", "many"), ("chunks", 10_000, None)]
)
def test_a_wrong_question_is_answered_under_the_form(name, value, message):
    panel = SolvePanel(open_cluster("full-mesh:gpus=128"))
    panel.collective.value = "all-to-all"
    getattr(panel, name).value = value

    assert panel.solve() is None
    assert (message or "at most") in panel.message.value


@pytest.mark.slow
def test_cancelling_keeps_the_best():
    panel = SolvePanel(open_cluster("dgx-2-te-ccl"))
    panel.time_limit.value = 600
    panel.formulation.value = "te-ccl-milp"

    async def pressed():
        task = panel.solve()
        assert task is not None
        while panel.result is None:
            await asyncio.sleep(0.05)
        panel.cancel()
        await task

    asyncio.run(pressed())

    assert panel.result.stop is Stop.CANCELLED
    assert panel.canvas.scene["take"]["number"] >= 1
    first = panel.canvas.scene["take"]["series"]

    asyncio.run(pressed())

    assert panel.canvas.scene["take"]["series"] != first


def test_empty_rows_leave_the_choice_to_the_formulation():
    fields = {field.name: field for field in option_fields(formulation("te-ccl-milp").options)}

    assert option_row(fields["horizon"]).answer is None


def test_a_problem_fills_in_the_form():
    """8 chunks of an all-to-all among 4 are 2 for each pair; 1.5 MiB is no round decimal size."""
    cluster = open_cluster("ring:gpus=4")
    for asked in (
        Problem(cluster, all_to_all(4, 1.5 * 2**20, chunks=2)),
        Problem(cluster, all_gather(4, 1234567.5)),
        Problem(cluster, all_reduce(4, 64e3, chunks=3)),
    ):
        panel = SolvePanel(asked)
        assert panel.problem == asked
        assert not panel.size.disabled


def test_a_problem_that_the_form_cannot_say_is_asked_as_it_was_given():
    """From rank 2, where the form's broadcast begins at rank 0; and a custom demand."""
    cluster = open_cluster("ring:gpus=4")
    for collective in (
        broadcast(4, 1e6, root=2),
        Collective("custom", 4, 1e6, (Chunk(1e6, (0,), (1, 3)),)),
    ):
        panel = SolvePanel(Problem(cluster, collective))
        assert panel.problem == Problem(cluster, collective)
        assert panel.size.disabled
        panel.collective.value = "all-gather"
        assert panel.problem.collective == all_gather(4, 1e6)
