"""The What-if view: bandwidths, latencies, counts and sizes that move, and what follows from them.

``knobs`` says what can be moved and makes the changed cluster, ``answering`` says what becomes of
it and what holds it down. ``page`` is the view, ``form`` its sliders. What takes longer, losses,
stragglers and budgets, is found in a process of its own (``worker``), which ``study_callbacks``
follow and ``study_cards`` show.
"""
