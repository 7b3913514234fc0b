"""Random edits of programs and of MSCCL XML, as a careless writer or a bad cable would make them.

``mutated(program, chance)`` and ``mutated_xml(text, chance)`` return words for what was changed and
the changed program or text; `chance` is a `random.Random`. An edit may happen to change nothing
that matters: whoever uses them needs a second opinion on that (`oracle`).
"""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from interchange.programs import BUFFERS, OPERATIONS, Slot

# Programs


def mutated(program, chance):
    """Return words and the program with one random edit; one without room for it is drawn anew."""
    while True:
        edit = chance.choice(EDITS)
        found = edit(program, chance)
        if found is not None and found != program:
            return edit.__name__.strip("_").replace("_", " "), found


def _with_block(program, rank, number, block):
    blocks = list(program.ranks[rank].blocks)
    blocks[number] = block
    return _with_rank(program, rank, replace(program.ranks[rank], blocks=tuple(blocks)))


def _with_rank(program, rank, changed):
    ranks = list(program.ranks)
    ranks[rank] = changed
    return replace(program, ranks=tuple(ranks))


def _any_block(program, chance, *, least=1):
    """Return rank, number and block of a block of `least` steps, or None."""
    those = [each for each in program.blocks() if len(each[2].steps) >= least]
    return chance.choice(those) if those else None


def _edited(program, chance, edit, *, least=1, wanted=None):
    """Edit the steps of a block in place; `edit` takes them and one's number."""
    found = _any_block(program, chance, least=least)
    if found is None:
        return None
    rank, number, block = found
    steps = list(block.steps)
    at = chance.randrange(len(steps))
    if wanted is not None and not wanted(steps[at]):
        return None
    edit(steps, at)
    return _with_block(program, rank, number, replace(block, steps=tuple(steps)))


def _changed(program, chance, changes, *, wanted=None):
    """Replace fields of a step by what `changes` says of it."""

    def edit(steps, at):
        steps[at] = replace(steps[at], **changes(steps[at]))

    return _edited(program, chance, edit, wanted=wanted)


def _wait_dropped(program, chance):
    return _changed(program, chance, lambda _: {"after": None}, wanted=lambda step: step.after)


def _wait_changed(program, chance):
    after = (chance.randrange(4), chance.randrange(6))
    return _changed(program, chance, lambda _: {"after": after})


def _steps_swapped(program, chance):
    def edit(steps, at):
        other = (at + 1) % len(steps)
        steps[at], steps[other] = steps[other], steps[at]

    return _edited(program, chance, edit, least=2)


def _step_dropped(program, chance):
    return _edited(program, chance, lambda steps, at: steps.pop(at))


def _step_repeated(program, chance):
    return _edited(program, chance, lambda steps, at: steps.insert(at, steps[at]))


def _operation_changed(program, chance):
    return _changed(program, chance, lambda _: {"operation": chance.choice(OPERATIONS)})


def _count_changed(program, chance):
    return _changed(
        program, chance, lambda step: {"count": step.count + chance.choice((-1, 1, 2, 1000))}
    )


def _index_changed(program, chance):
    name = chance.choice(("src", "dst"))

    def changes(step):
        was = getattr(step, name)
        return {name: Slot(was.buffer, was.index + chance.choice((-2, -1, 1, 2, 1000)))}

    return _changed(program, chance, changes, wanted=lambda step: getattr(step, name))


def _buffer_changed(program, chance):
    name = chance.choice(("src", "dst"))

    def changes(step):
        return {name: Slot(chance.choice(BUFFERS), getattr(step, name).index)}

    return _changed(program, chance, changes, wanted=lambda step: getattr(step, name))


def _place_dropped(program, chance):
    return _changed(program, chance, lambda _: {chance.choice(("src", "dst")): None})


def _peer_changed(program, chance):
    rank, number, block = _any_block(program, chance)
    name = chance.choice(("send", "receive", "channel"))
    value = chance.randrange(-1, len(program.ranks) + 1)
    return _with_block(program, rank, number, replace(block, **{name: value}))


def _step_moved(program, chance):
    """Take a step to the end or the beginning of another block of its rank."""
    rank, number, block = _any_block(program, chance)
    other = chance.randrange(len(program.ranks[rank].blocks))
    if other == number:
        return None
    steps = list(block.steps)
    moved = steps.pop(chance.randrange(len(steps)))
    program = _with_block(program, rank, number, replace(block, steps=tuple(steps)))
    into = program.ranks[rank].blocks[other]
    joined = (moved, *into.steps) if chance.random() < 0.5 else (*into.steps, moved)
    return _with_block(program, rank, other, replace(into, steps=joined))


def _block_dropped(program, chance):
    rank, number, _ = _any_block(program, chance)
    blocks = list(program.ranks[rank].blocks)
    del blocks[number]
    return _with_rank(program, rank, replace(program.ranks[rank], blocks=tuple(blocks)))


def _size_changed(program, chance):
    rank = chance.randrange(len(program.ranks))
    each = program.ranks[rank]
    name = chance.choice(BUFFERS)
    value = max(0, getattr(each, name) + chance.choice((-1, 1)))
    return _with_rank(program, rank, replace(each, **{name: value}))


def _call_changed(program, chance):
    return replace(
        program,
        in_place=chance.random() < 0.5,
        out_of_place=chance.random() < 0.5,
        root=chance.randrange(len(program.ranks)),
    )


EDITS = (
    _wait_dropped,
    _wait_dropped,
    _wait_changed,
    _steps_swapped,
    _step_dropped,
    _step_repeated,
    _step_moved,
    _operation_changed,
    _count_changed,
    _index_changed,
    _index_changed,
    _buffer_changed,
    _place_dropped,
    _peer_changed,
    _block_dropped,
    _size_changed,
    _call_changed,
)

# Files

VALUES = {
    "type": ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"),
    "srcbuf": ("i", "o", "s"),
    "dstbuf": ("i", "o", "s"),
    "coll": ("allreduce", "allgather", "alltoall", "reduce_scatter"),
    "hasdep": ("0", "1"),
    "inplace": ("0", "1"),
    "outofplace": ("0", "1"),
}
IDLE = {"name", "proto", "minBytes", "maxBytes", "nthreads", "redop"}
"""Attributes that say nothing about what a program does."""


def mutated_xml(text, chance):
    """Return words and the text with one random edit of a step, a thread block or a rank."""
    while True:
        tree = ElementTree.fromstring(text)
        said = chance.choice(XML_EDITS)(tree, chance)
        if said is not None:
            return said, ElementTree.tostring(tree, "unicode")


def _attribute(tree, chance):
    kind = chance.choice(("step", "step", "step", "step", "tb", "gpu", "algo"))
    element = chance.choice(list(tree.iter(kind)))
    name = chance.choice([each for each in element.attrib if each not in IDLE])
    was = element.get(name)
    if name in VALUES:
        value = chance.choice(VALUES[name])
    else:
        value = str(int(was) + chance.choice((-2, -1, 1, 2, 1000)))
    if value == was:
        return None
    element.set(name, value)
    return f"{name} of a {kind} is {value} and was {was}"


def _wait(tree, chance):
    waiting = [each for each in tree.iter("step") if each.get("depid") not in (None, "-1")]
    if not waiting:
        return None
    chosen = chance.choice(waiting)
    chosen.set("depid", "-1")
    chosen.set("deps", "-1")
    return f"step {chosen.get('s')} no longer waits"


def _steps(tree, chance):
    """Drop, repeat or swap steps of a thread block and number them anew."""
    block = chance.choice([each for each in tree.iter("tb") if len(each)])
    steps = list(block)
    at = chance.randrange(len(steps))
    said = chance.choice(("dropped", "repeated", "swapped"))
    if said == "dropped":
        del steps[at]
    elif said == "repeated":
        steps.insert(at, ElementTree.fromstring(ElementTree.tostring(steps[at])))
    elif len(steps) > 1:
        other = (at + 1) % len(steps)
        steps[at], steps[other] = steps[other], steps[at]
    else:
        return None
    block[:] = steps
    for number, step in enumerate(steps):
        step.set("s", str(number))
    return f"step {at} is {said}"


def _missing(tree, chance):
    parent = chance.choice([tree, *tree.iter("gpu")])
    if len(parent) == 0:
        return None
    lost = chance.choice(list(parent))
    parent.remove(lost)
    return f"a {lost.tag} is missing"


XML_EDITS = (_attribute, _attribute, _wait, _steps, _missing)
