"""Docstrings as Markdown."""

from __future__ import annotations

from formulations.analyses.explanation import lead, markdown

WORDS = """Rings: every GPU passes on ``what`` it receives, as `ring` says.

Sets: edges e, with b[e] <= 3 and a_b * c. It takes  (p-1) (α + m/p β).  Then more.

    minimise    R
    x[e] <= b[e]        each e

    for every e

1. First. With k <= 3:

       y >= 2

   and so on.
2. Second, on
   two lines.

Alone

* **strong**: words
"""


def test_paragraphs_lists_and_formulas_are_told_apart() -> None:
    """Formulas keep their columns: ``<=`` is one character shorter, so a gap grows by one."""
    assert markdown(WORDS) == (
        "**Rings:** every GPU passes on `what` it receives, as `ring` says.\n\n"
        "**Sets:** edges e, with `b[e]` ≤ 3 and a\\_b \\* c. It takes `(p-1) (α + m/p β)`. "
        "Then more.\n\n"
        "```text\nminimise    R\nx[e] ≤ b[e]         each e\n\nfor every e\n```\n\n"
        "1. First. With k ≤ 3:\n\n"
        "   ```text\n   y ≥ 2\n   ```\n\n"
        "   and so on.\n\n"
        "2. Second, on two lines.\n\n"
        "#### Alone\n\n"
        "* **strong**: words\n"
    )


def test_the_lead_is_plain() -> None:
    assert lead(WORDS) == "Rings: every GPU passes on what it receives, as ring says."


def test_text_that_looks_like_markup_stays_text() -> None:
    assert markdown("u -> v, |k|, [x](y), <b> # 1.") == (
        "u -\\> v, \\|k\\|, \\[x\\](y), \\<b\\> \\# 1.\n"
    )
