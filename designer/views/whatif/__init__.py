"""The What-if view: bandwidths, latencies, counts and sizes that move, and what follows from them.

``knobs`` says what can be moved and makes the changed cluster, ``told`` says what becomes of it,
``answering`` puts both together for the page. ``page`` is the view, ``form`` its sliders,
``figures`` today beside the change. ``limits`` says what holds it down; what takes longer, losses,
stragglers and budgets, is found in a process of its own (``worker``), which ``running`` follows.
"""
