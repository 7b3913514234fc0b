"""PAT: any number of GPUs in the fewest steps, the nearest partners last."""

import math

import pytest

from tests.formulations.engines.closed_forms.forms import (
    BETA,
    SIZE,
    STAR,
    as_written,
    asked,
    halves,
    solved,
)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 11])
def test_it_takes_ceil_log2_p_steps(ranks, kind):
    result = solved("pat", asked(f"star:gpus={ranks}", kind))

    steps = math.ceil(math.log2(ranks))
    as_written(result, halves(kind) * (steps * STAR + (ranks - 1) / ranks * SIZE * BETA))


def test_the_farthest_come_first_and_the_most_goes_to_the_nearest():
    """Of 6 GPUs: distance 4 once, 2 once (4 + 2 is round again), 1 three times per root."""
    result = solved("pat", asked("full-mesh:gpus=6", "all-gather"))

    far: dict[int, list[int]] = {}
    for each in sorted(result.plan.sends, key=lambda send: send.epoch):
        hop = (int(each.dst[1:]) - int(each.src[1:])) % 6
        far.setdefault(each.chunk, []).append(hop)
    assert all(sorted(hops, reverse=True) == [4, 2, 1, 1, 1] for hops in far.values())
    assert [hops[0] for hops in far.values()] == [4] * 6
