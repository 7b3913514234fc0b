"""What the canvas and its host tell one another, in one list for every host.

The Dash component takes its properties from it; the notebook widget's traits have the same names,
which a test holds them to. The JSON shapes are those of `widgets.shown.scene`.
"""

from __future__ import annotations

PROPS = {
    "drawing": (
        "the cluster and where its devices lie: {topology, positions}; edited on the canvas, and "
        "set by Python as one step that can be undone"
    ),
    "scene": "the schedule that is played, or None",
    "cuts": "bottleneck cuts, the tightest first",
    "marks": (
        "what is drawn over the cluster, or None: {title, groups, badges, arrows, fade}; each of "
        "the groups has {tone, devices, links, label, badge, dash} (`widgets.shown.classes`)"
    ),
    "sketch": (
        "what a solver is to use of the cluster, or None: {drawing, off, relays}; while it is "
        "drawn, clicks pick instead of selecting"
    ),
    "picked": (
        "{picks, n}: what was clicked while a sketch is drawn, the last ones in order: "
        "{links, n}, {device, n}, or {done, n} when drawing ended; set by the canvas"
    ),
    "selection": (
        "{devices, links, hosts}: names, and ends of links; one pair of ends stands for both "
        "directions of a line"
    ),
    "focus": (
        "{chunk, link, rank, host, transfer} of the scene that is looked at, each a number, the "
        "ends of a link, a name or None; None: nothing is. Parts that are left out are None"
    ),
    "inspect": "whether the inspector is open, beneath the cluster",
    "time": "where the player is, in µs; reported at most five times a second",
    "stale": "whether the drawing is another cluster than the scene's; set by the canvas",
    "theme": "auto, light or dark; auto follows the page",
    "height": "of the whole canvas, as in CSS",
    "toolbar": "whether the floating tools are shown",
    "timeline": "whether the player's strip is shown when there is a scene",
    "locked": "whether the cluster is only looked at: devices may be moved, nothing else changed",
    "link_preset": "{bandwidth, alpha, medium} of a link that is drawn: GB/s and µs",
    "command": "{name, args, n}: what to do, with a number that differs from the last one's",
    "message": "{text, n}: the last thing that was refused and why; set by the canvas",
    "trouble": (
        "{text, n}: what went wrong in Python when it heard of something, shown below the view "
        "until the text is empty"
    ),
}

PAIR_PROPS = {
    "drawing": "the cluster and where its devices lie, as for the canvas; only moves change it",
    "choices": "the schedules there are: {key, label, group, fact} each; groups are told apart",
    "chosen": "the keys of the two that are shown; set by the view, which asks for films with it",
    "films": "the two that are played: {key, scene}; the same scene goes on where it is",
    "theme": "auto, light or dark; auto follows the page",
    "height": "of the whole view, as in CSS",
}
"""What two players in step and their host tell one another."""
