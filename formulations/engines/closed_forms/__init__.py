"""Closed forms: textbook algorithms as messages in steps, laid out on the drawn graph.

A form says who sends which chunk to whom in which step, among places in an order (`messages`),
and what the published formula says of it (`pattern`). The rest is the same for all: the order of
the ranks (`orders`), the paths between them (`paths`), the steps on the links (`steps`), and
reductions, which are forms read backwards (`answer`).
"""
