"""What a lesson needs beside its text: predict, then reveal; break a send; a score.

Nothing blocks: every answer can be revealed at once, and the score is only for who takes the
lesson. It lives in the kernel and is sent nowhere.

>>> lesson = Lesson("alpha and beta")
>>> question = lesson.predict("1 MB at 50 GB/s takes", answer=20.0, unit="µs", reveal="1e6 / 5e4")
>>> question.answer_with(20.5)
>>> lesson.text()
'alpha and beta: 1 of 1 right'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape, unescape
from typing import Any

import ipywidgets

from ccl.errors import CclError, ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.verify import verify
from widgets.notebook.still import InWords

MOST_SENDS = 500
"""Sends that can be chosen; more than that nobody looks through."""


def leave_out(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule without a send."""
    return replace(schedule, sends=schedule.sends[:place] + schedule.sends[place + 1 :])


def send_at_once(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send in its first epoch, before all others."""
    moved = replace(schedule.sends[place], epoch=0)
    return replace(schedule, sends=(moved, *schedule.sends[:place], *schedule.sends[place + 1 :]))


def send_too_late(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send in its last epoch."""
    return _with(schedule, place, replace(schedule.sends[place], epoch=schedule.horizon - 1))


def send_another_chunk(schedule: Schedule, place: int, problem: Problem) -> Schedule:
    """Return the schedule with the next chunk in a send."""
    send = schedule.sends[place]
    chunk = (send.chunk + 1) % len(problem.collective.chunks)
    return _with(schedule, place, replace(send, chunk=chunk))


def send_back(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send that goes the other way."""
    send = schedule.sends[place]
    turned = replace(send, src=send.dst, dst=send.src, via=send.via[::-1])
    return _with(schedule, place, turned)


def _with(schedule: Schedule, place: int, send: Send) -> Schedule:
    sends = (*schedule.sends[:place], send, *schedule.sends[place + 1 :])
    return replace(schedule, sends=sends)


CHANGES = {
    "leave it out": leave_out,
    "send it at once": send_at_once,
    "send it in the last epoch": send_too_late,
    "send another chunk": send_another_chunk,
    "send it the other way": send_back,
}
"""How a send can be broken."""


VALID = "valid"
"""What is said of a plan in which nothing is wrong."""


def verdict(problem: Problem, plan: Plan) -> str:
    """Return what the verifier says of a plan: ``valid``, or what is wrong with it first."""
    try:
        verify(problem, plan)
    except CclError as error:
        return str(error)
    return VALID


class BreakASend(InWords, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """Choose a send and a way to break it; the verifier's sentence comes below.

    Parameters
    ----------
    content
        A result, whose schedule is broken; or a problem, of which `plan` is one.
    plan
        The schedule, where it is not a result's; it stays as it is.

    Raises
    ------
    ProblemError
        If the plan is no schedule.
    """

    words = "Break one send and let the verifier find it. (Run the notebook to try.)"

    def __init__(self, content: Result | Problem, plan: Plan | None = None) -> None:
        if isinstance(content, Result):
            problem, plan = content.problem, content.plan
        else:
            problem = content
        if not isinstance(plan, Schedule):
            kind = "none" if plan is None else f"a {type(plan).__name__.lower()}"
            raise ProblemError(f"only a schedule has sends to break; the plan given is {kind}")
        self._problem, self._schedule = problem, plan
        listed = enumerate(self._schedule.sends[:MOST_SENDS])
        self.send = ipywidgets.Dropdown(
            options=[(f"epoch {send.epoch}: {send}", i) for i, send in listed], description="Send"
        )
        self.way = ipywidgets.Dropdown(options=list(CHANGES), description="Break it")
        self.button = ipywidgets.Button(description="Verify", icon="search")
        self.message = ipywidgets.HTML()
        """What the verifier says."""
        self.button.on_click(lambda _: self.verify())
        row = ipywidgets.HBox([self.send, self.way, self.button])
        row.layout.flex_flow = "row wrap"
        super().__init__([row, self.message])

    @property
    def broken(self) -> Schedule:
        """The schedule with the chosen send broken."""
        return CHANGES[self.way.value](self._schedule, self.send.value, self._problem)

    def verify(self) -> None:
        """Break the chosen send and show what the verifier says."""
        said = verdict(self._problem, self.broken)
        if Counter(self.broken.sends) == Counter(self._schedule.sends):
            words = "<b>Nothing is wrong.</b> The plan does this already; break it in another way."
        elif said == VALID:
            words = "<b>Nothing is wrong.</b> The plan does not need this send as it was: why?"
        else:
            words = f"<b>Found.</b> {escape(said)}"
        self.message.value = f'<div role="status">{words}</div>'


RIGHT, CLOSE, WRONG = "#00805c", "#8a6100", "#b4400a"
"""Colours of verdicts; each comes with a word."""

_CARD = (
    "border-left:4px solid {tone};padding:6px 12px;margin:6px 0;background:rgba(119,135,154,0.10);"
    "border-radius:0 6px 6px 0;line-height:1.5"
)

_BADGE = "background:{tone};color:#fff;padding:2px 9px;margin-right:4px;border-radius:10px"
"""White on a verdict's colour is read on a light page and on a dark one."""


def card(text: str, *, tone: str = "#1b7fc0") -> str:
    """Return a note as HTML; `text` is HTML of the lesson's author."""
    return f'<div style="{_CARD.format(tone=tone)}">{text}</div>'


def words_of(html: str) -> str:
    """Return HTML without its tags, for a saved notebook that has no kernel."""
    return unescape(re.sub(r"<[^>]+>", "", html))


class Note(InWords, ipywidgets.HTML):  # type: ignore[misc]  # it has no types
    """A card that stays as its words in a saved notebook."""

    @property
    def words(self) -> str:  # type: ignore[override]
        """What it says."""
        return words_of(self.value)


class Question(InWords, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """A question that is answered by guessing first; `Lesson` makes it.

    Parameters
    ----------
    question
        HTML.
    control
        Where the guess goes.
    judge
        Says of a guess whether it is right, and in words how far off it is.
    reveal
        HTML that explains the answer.
    show
        Makes a view that goes with it; called when it is revealed, not before.
    changed
        Called when there is a verdict.
    """

    def __init__(
        self,
        question: str,
        control: ipywidgets.Widget,
        *,
        judge: Callable[[Any], tuple[bool, str]],
        reveal: str,
        show: Callable[[], ipywidgets.Widget] | None,
        changed: Callable[[], None],
    ) -> None:
        self.question, self.control = question, control
        self.words = f"Predict. {words_of(question)} (Run the notebook to answer.)"
        self.right: bool | None = None
        """Whether the first guess was right; None before it."""
        self.revealed = False
        """Whether the answer is shown."""
        self._judge, self._reveal, self._show, self._changed = judge, reveal, show, changed
        self.verdict = ipywidgets.HTML()
        """What the guess was worth, in words."""
        self.answer_box = ipywidgets.VBox()
        """The explanation, empty until it is revealed."""
        self.check_button = ipywidgets.Button(description="Check", icon="check")
        self.reveal_button = ipywidgets.Button(description="Reveal", icon="eye")
        self.check_button.on_click(lambda _: self.check())
        self.reveal_button.on_click(lambda _: self.reveal())
        row = ipywidgets.HBox([control, self.check_button, self.reveal_button])
        row.layout.flex_flow = "row wrap"
        super().__init__(
            [ipywidgets.HTML(card(f"<b>Predict.</b> {question}")), row, self.verdict,
             self.answer_box]
        )  # fmt: skip

    def answer_with(self, guess: Any) -> None:
        """Type a guess and check it."""
        self.control.value = guess
        self.check()

    def check(self) -> None:
        """Judge the guess; the first one counts."""
        if self.control.value is None:
            self.verdict.value = (
                '<span role="status">Choose one first, or reveal the answer.</span>'
            )
            return
        right, words = self._judge(self.control.value)
        if self.right is None and not self.revealed:
            self.right = right
        tone = RIGHT if right else WRONG
        style = _BADGE.format(tone=tone)
        verdict = f'<b style="{style}">{"Right" if right else "Not quite"}</b>'
        self.verdict.value = f'<span role="status">{verdict} {words}</span>'
        self._changed()

    def reveal(self) -> None:
        """Show the answer; a guess after it does not count."""
        if self.revealed:
            return
        self.revealed = True
        parts: list[ipywidgets.Widget] = [ipywidgets.HTML(card(self._reveal, tone=RIGHT))]
        if self._show is not None:
            parts.append(self._show())
        self.answer_box.children = tuple(parts)
        self._changed()


class Lesson:
    """Keeps count of what was predicted, checked and broken in one notebook.

    Parameters
    ----------
    title
        Shown with the score.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._questions: list[Question] = []
        self._checks: dict[str, bool] = {}
        self._shown = Note()
        self._update()

    def predict(
        self,
        question: str,
        *,
        answer: float,
        unit: str = "",
        within: float = 0.05,
        reveal: str,
        show: Callable[[], ipywidgets.Widget] | None = None,
    ) -> Question:
        """Ask for a number.

        Parameters
        ----------
        question
            HTML.
        answer
            What is right, in `unit`.
        unit
            Stands behind the field.
        within
            Share by which a guess may be off and is still right.
        reveal
            HTML that explains it.
        show
            Makes a view that goes with the explanation, when it is revealed.
        """
        control = ipywidgets.FloatText(0.0, description=unit or "guess", step=None)

        def judge(guess: float) -> tuple[bool, str]:
            off = abs(guess - answer) / abs(answer) if answer else abs(guess)
            side = "more" if guess > answer else "less"
            if off <= within:
                return True, f"{guess:g} {unit} is within {within:.0%}."
            return False, f"{guess:g} {unit} is {_how_much(off)} {side} than it is."

        return self._ask(question, control, judge=judge, reveal=reveal, show=show)

    def choose(
        self,
        question: str,
        choices: Sequence[str],
        *,
        answer: str,
        reveal: str,
        show: Callable[[], ipywidgets.Widget] | None = None,
    ) -> Question:
        """Ask which of several it is; `answer` is one of the `choices`.

        Raises
        ------
        ValueError
            If it is not one of them: a mistake of the lesson.
        """
        if answer not in choices:
            raise ValueError(f"the answer {answer!r} is none of the choices: {', '.join(choices)}")
        control = ipywidgets.RadioButtons(options=list(choices), value=None)
        control.layout.width = "max-content"  # or long choices are cut off
        control.layout.margin = "2px 24px 2px 2px"

        def judge(guess: str) -> tuple[bool, str]:
            return guess == answer, f"You chose: {escape(guess)}."

        return self._ask(question, control, judge=judge, reveal=reveal, show=show)

    def check(self, name: str, passed: object, *, otherwise: str = "") -> ipywidgets.HTML:
        """Say whether an exercise that is done in code is solved yet.

        Parameters
        ----------
        name
            Of the exercise; checking it again replaces the verdict.
        passed
            Whether it is solved.
        otherwise
            A hint where it is not.
        """
        self._checks[name] = bool(passed)
        self._update()
        if passed:
            return Note(card(f"<b>Exercise {escape(name)} is solved.</b>", tone=RIGHT))
        hint = f" {escape(otherwise)}" if otherwise else ""
        return Note(card(f"<b>Exercise {escape(name)} is not solved yet.</b>{hint}", tone=CLOSE))

    def break_a_send(self, content: Result | Problem, plan: Plan | None = None) -> BreakASend:
        """Return a form that breaks one send of a result, or of a problem's schedule.

        Raises
        ------
        ProblemError
            If the plan is no schedule.
        """
        return BreakASend(content, plan)

    def score(self) -> ipywidgets.HTML:
        """Return the score, which goes on counting where it is shown."""
        return self._shown

    def text(self) -> str:
        """Return the score in words."""
        tried = [each.right for each in self._questions if each.right is not None]
        right = sum(tried) + sum(self._checks.values())
        parts = [f"{right} of {len(self._questions) + len(self._checks)} right"]
        left = sum(each.right is None and not each.revealed for each in self._questions)
        if left:
            parts.append(f"{left} not tried")
        return f"{self.title}: {', '.join(parts)}"

    def _ask(self, question: str, control: ipywidgets.Widget, **how: Any) -> Question:
        made = Question(question, control, changed=self._update, **how)
        # A cell that is run again asks again, it does not ask one more.
        self._questions = [each for each in self._questions if each.question != question]
        self._questions.append(made)
        self._update()
        return made

    def _update(self) -> None:
        self._shown.value = card(f"<b>Score.</b> {escape(self.text())}")


def _how_much(off: float) -> str:
    """Say how far a guess is off, as a share of what is right."""
    return f"{off:.0%}" if off < 10 else f"{off:,.0f} times"
