"""Results as they go from a solver's process to the one that asked."""

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import solve
from formulations.jobs.solve_job import Receiver, Sender
from gallery import open_cluster


@pytest.mark.parametrize(
    ("cluster", "kind", "method"),
    [
        ("dgx-1v", "all-reduce", "list"),
        ("dgx-1v", "all-gather", "orbit-trees"),
        ("torus:shape=4x4", "all-gather", "forestcoll"),
        ("ring:gpus=4", "all-to-all", "orbit-lp"),
        ("ring:gpus=4", "all-gather", "auto"),
    ],
)
def test_what_is_received_is_what_was_sent(cluster, kind, method):
    """Schedules, forests and flows, symmetric ones too; the problem is the very one that asked."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    sent = solve(problem, method, time_limit=5)

    received = Receiver(problem).result(Sender(problem).text(sent))

    assert received == sent
    assert received.timeline.after == sent.timeline.after
    assert received.problem.topology is topology


def test_a_plan_is_sent_once():
    """What is said of it later comes without it; another plan comes whole."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6))
    first, second = (solve(problem, name, time_limit=5) for name in ("ring", "list"))
    sender, receiver = Sender(problem), Receiver(problem)
    texts = [sender.text(each) for each in (first, first, second)]

    found = [receiver.result(each) for each in texts]

    assert len(texts[1]) < len(texts[0]) / 2
    assert found == [first, first, second]
    assert found[1].timeline is found[0].timeline
