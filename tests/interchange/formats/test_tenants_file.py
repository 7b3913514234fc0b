"""Tenants as YAML and windows as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccl.collective import Tenant, all_gather, broadcast
from ccl.errors import CclError, FormatError, ProblemError
from ccl.problem import Window
from ccl.serialization.conditions import parse_window, read_tenants
from tests.ccl.clusters import MB, line, mesh, ring

BOTH = b"""
tenants:
  - name: training
    collective: all-gather
    size: 4MB
    ranks: 0-1, g3
  - {name: serving, collective: broadcast, size: 2000000, root: g2, chunks: 2, priority: 5}
"""


class TestTenants:
    def test_are_read_with_ranks_by_name_number_and_range(self):
        """Ranks 0, 1 and 3 gather; all four take part where none are named, from the root g2."""
        assert read_tenants(BOTH, mesh(4)) == (
            Tenant("training", all_gather(3, 4 * MB), (0, 1, 3)),
            Tenant("serving", broadcast(4, 2 * MB, root=2, chunks=2), (0, 1, 2, 3), 5.0),
        )

    def test_a_root_is_numbered_among_the_tenants_own(self):
        text = b"tenants: [{name: a, collective: broadcast, size: 1MB, ranks: [g3, g1], root: g1}]"

        assert read_tenants(text, mesh(4)) == (Tenant("a", broadcast(2, MB, root=1), (3, 1)),)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (b"tenants: [", "jobs.yaml is not YAML"),
            (b"\xff", "jobs.yaml is not UTF-8"),
            (b"a: &x 1\nb: *x", r"jobs.yaml has an alias \(\*\)"),
            (b"tenants: []", r"jobs.yaml, at tenants: .*length >= 1"),
            (b"tenants: [{name: a}]", "missing required field `collective`"),
            (b"tenants: [{name: a, collective: gossip, size: 1MB}]", "tenant a: collective 'gossi"),
            (b"tenants: [{name: a, collective: custom, size: 1MB}]", "tenant a: collective 'custo"),
            (
                b"tenants: [{name: a, collective: broadcast, size: 1MB, ranks: g7}]",
                "tenant a: 'g7' is no GPU of mesh; give a name or a rank from 0 to 3",
            ),
            (
                b"tenants: [{name: a, collective: broadcast, size: 1MB, ranks: 0-9}]",
                "tenant a: '9' is no GPU of mesh",
            ),
            (
                b"tenants: [{name: a, collective: broadcast, size: 1MB, ranks: 0-1, root: 2}]",
                "tenant a: the root g2 is not one of its ranks",
            ),
            (
                b"tenants: [{name: a, collective: broadcast, size: much}]",
                "size 'much' is not a num",
            ),
            (b"tenants: [{name: a, collective: broadcast, size: 1, colour: red}]", "unknown field"),
            (
                b"tenants: [{name: a, collective: broadcast, size: 1, ranks: []}]",
                "needs 2 ranks or more, got 0",
            ),
        ],
    )
    def test_refuses(self, text, says):
        with pytest.raises(CclError, match=says):
            read_tenants(text, mesh(4), name="jobs.yaml")


class TestWindows:
    @pytest.mark.parametrize(
        ("text", "window"),
        [
            ("g0->g1@0..50us=0.5", Window((("g0", "g1"),), 0, 50, 0.5)),
            (" g0 -> g1 @ 1ms .. 2 ms = 50 %", Window((("g0", "g1"),), 1000, 2000, 0.5)),
            ("g0<->g1@5..8=0", Window((("g0", "g1"), ("g1", "g0")), 5, 8, 0)),
            ("g0->g1,g0<->g1@.5..1e1µs=1", Window((("g0", "g1"), ("g1", "g0")), 0.5, 10, 1)),
            ("g0@10us..1s=0.25", Window((("g0", "g1"), ("g1", "g0")), 10, 1e6, 0.25)),
        ],
    )
    def test_are_read(self, text, window):
        assert parse_window(text, line(3)) == window

    @pytest.mark.parametrize(
        "text",
        ["", "g0->g1", "@0..5=1", "g0->g1@5=1", "g0->g1@0..5", "g0->g1@a..5=1", "g0@0..5=-1"],
    )
    def test_that_are_written_otherwise_are_refused(self, text):
        with pytest.raises(
            FormatError, match=r"cannot be read; write it like gpu0->gpu1@0\.\.50us"
        ):
            parse_window(text, line(3))

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("g0->g2@0..5=1", "line has no link g0->g2"),
            ("g9@0..5=1", "line has no device called g9"),
            ("g0->g1@5..5=1", "covers no time"),
            ("g0->g1@0..5=101%", "leaves 1.01 of the bandwidth"),
        ],
    )
    def test_must_make_sense(self, text, says):
        with pytest.raises(ProblemError, match=says):
            parse_window(text, line(3))

    @given(
        begin=st.floats(0, 1e6),
        length=st.floats(1e-3, 1e6),
        share=st.floats(0, 1),
        links=st.lists(
            st.sampled_from([each.ends for each in ring(4).links]), min_size=1, unique=True
        ),
    )
    def test_any_window_is_read(self, begin, length, share, links):
        window = Window(tuple(links), begin, begin + length, share)
        named = ",".join(f"{src}->{dst}" for src, dst in links)

        text = f"{named}@{window.begin!r}..{window.end!r}us={window.share!r}"

        assert parse_window(text, ring(4)) == window
