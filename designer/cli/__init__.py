"""The command line: ``topoloom design|gallery|solve|compare|bound|optimum|verify|export|import``.

Standard output carries answers, one JSON object with ``--json``; progress and errors go to
standard error. Bad input ends with exit code 2 and one sentence, a plan that breaks a rule ends
``verify`` with 1, and an interrupted solve ends with 130 after its best plan was printed and kept.
"""

from designer.cli.entry import main

__all__ = ["main"]
