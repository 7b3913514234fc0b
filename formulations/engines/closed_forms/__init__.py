"""Closed forms: textbook algorithms as messages in steps, laid out on the drawn graph.

A form says who sends which chunk to whom in which step, among places in an order
(`trees.Messages`), and what the published formula says of it (`routing.Pattern`). The rest is the
same for all: the order of the ranks (`hosts.arranged`), the paths between them (`routing`), the
steps on the links (`steps.walked`), and reductions, which are forms read backwards
(`steps.answer`). `rings` and `trees` have what several forms share.
"""
