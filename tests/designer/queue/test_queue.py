"""Solves go to workers through a real Redis and come back; nothing is lost where one dies."""

from __future__ import annotations

import json
import time

import psutil
import pytest

pytest.importorskip("redis", reason="redis, an extra, is not installed")
pytest.importorskip("celery", reason="Celery, an extra, is not installed")

from ccl.errors import ProblemError, SolveError
from ccl.result import Stop
from ccl.serialization.topoloom import result_to_json
from designer.cli import main
from designer.queue import sent, working
from designer.queue.broker import WAITING, WORKERS, Names, QueueGone, connect, tell
from designer.queue.sent import Queue, QueuedJobs
from designer.queue.tasks import QUEUE
from designer.queue.working import Bench, Leaving
from designer.shell.request import Request
from formulations import solve

LAZY = {"formulation": "list", "options": {}}
"""A solve without a time limit, which the workers of these tests never end."""


@pytest.fixture(scope="module")
def workers(worker_of):
    return [worker_of(), worker_of()]


@pytest.fixture
def queue(url):
    """A queue in which nothing is left of the test before."""
    made = Queue(url, waiting=3)
    yield made
    made.redis.delete(WAITING, QUEUE)


def until(job, wanted, within=120.0):
    """Follow a job until its news are as wanted, and return those."""
    end = time.monotonic() + within
    for news in job:
        if wanted(news):
            return news
        assert time.monotonic() < end
    return pytest.fail("it never came to that")


def soon(holds, within=60.0):
    """Say whether something comes to hold within some seconds."""
    end = time.monotonic() + within
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


# With workers


def test_a_solve_comes_back_verified_as_if_it_were_solved_here(workers, queue, found):
    job = queue.start(found.problem, "ring", options={}, time_limit=60)
    news = list(job)

    assert job.result().plan == found.plan
    assert job.result().problem == found.problem
    assert [each.result.plan for each in news if each.result is not None] == [found.plan]
    assert news[-1].incumbent == pytest.approx(found.makespan)
    lives = [queue.redis.ttl(name) for name in queue.redis.scan_iter("topoloom:solve:*")]
    assert lives
    assert all(0 < seconds <= 3600 for seconds in lives)


def test_what_the_worker_refuses_is_raised_here(workers, queue, found):
    job = queue.start(found.problem, "ring", options={"colour": "red"})

    with pytest.raises(ProblemError, match="colour"):
        job.result()


def test_a_cancel_keeps_the_best_plan_and_ends_the_solver(workers, queue, found):
    job = queue.start(found.problem, **LAZY)
    until(job, lambda news: news.result is not None)
    job.cancel()

    assert job.result().plan == found.plan
    assert job.result().stop is Stop.CANCELLED
    assert soon(lambda: queue.redis.exists(job.names.ended))
    assert soon(lambda: not solvers(workers))


def solvers(workers):
    """Return the workers that have a solver's process."""
    return [each for each in workers if psutil.Process(each.pid).children()]


def test_a_solve_whose_server_is_gone_is_ended(workers, queue, found):
    """What says that it is asked for expires after 150 s; here it is taken away."""
    job = queue.start(found.problem, **LAZY)
    until(job, lambda news: news.result is not None)
    queue.redis.delete(job.names.asked)

    assert soon(lambda: queue.redis.exists(job.names.ended))
    assert soon(lambda: not solvers(workers))
    # A server that comes next finds nothing in its way.
    with pytest.raises(ProblemError, match="colour"):
        Queue(queue.url).start(found.problem, "ring", options={"colour": "red"}).result()


def test_a_solve_whose_worker_is_killed_starts_again_on_another(workers, queue, found, monkeypatch):
    monkeypatch.setattr(sent, "LOST", 0.3)
    job = queue.start(found.problem, **LAZY)
    until(job, lambda news: news.result is not None)
    (first,) = solvers(workers)
    (other,) = (each for each in workers if each is not first)
    first.kill()
    first.wait()
    until(job, lambda news: news.message == sent.AGAIN)
    assert job.best.plan == found.plan
    until(job, lambda news: news.result is not None)
    assert solvers([other])
    job.cancel()

    assert job.result().plan == found.plan


# Without workers


def test_who_waits_is_told_the_place_and_that_no_worker_is_there(redis_of, found):
    queue = Queue(redis_of()[1], waiting=2)
    jobs = [queue.start(found.problem, **LAZY) for _ in range(2)]
    words = [next(iter(job)).message for job in jobs]

    assert words == [
        f"waiting, {place} in line; no worker is there yet" for place in ("1st", "2nd")
    ]
    with pytest.raises(ProblemError, match="2 solves wait for a worker already, which is as many"):
        queue.start(found.problem, **LAZY)
    jobs[0].cancel()
    with pytest.raises(SolveError, match="cancelled before the first schedule"):
        jobs[0].result()
    assert queue.redis.zrange(WAITING, 0, -1) == [jobs[1].names.key.encode()]


def test_the_page_is_told_the_place(redis_of, found):
    jobs = QueuedJobs(Queue(redis_of()[1]))
    keys = [jobs.start(found.problem, Request()) for _ in range(2)]
    end = time.monotonic() + 60
    while (states := [jobs.state(key) for key in keys])[1].waiting != 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    jobs.close()

    assert states[1].running
    assert not any(jobs.running(key) for key in keys)


def test_a_solve_that_nobody_has_any_more_is_sent_again_once(redis_of, found, monkeypatch):
    """A Redis that forgets all it had, as one that begins anew: the solve is sent again."""
    monkeypatch.setattr(sent, "LOST", 0.1)
    queue = Queue(redis_of()[1])
    job = queue.start(found.problem, **LAZY)
    news = iter(job)
    next(news)
    queue.redis.flushall()
    assert next(news).message == sent.AGAIN
    assert queue.redis.llen(QUEUE) == 1

    queue.redis.flushall()
    with pytest.raises(SolveError, match="lost twice with its worker"):
        job.result()


def test_what_a_worker_had_found_is_kept_when_the_next_finds_less(redis_of, found):
    """The second worker begins anew: no plan, then a worse one, then its end."""
    worse = solve(found.problem, "bruck")
    assert worse.makespan > found.makespan
    queue = Queue(redis_of()[1])
    job = queue.start(found.problem, **LAZY)
    said = {"event": "progress", "bound": 1.0, "message": "", "better": True}
    for seconds, result in ((3.0, found), (1.0, worse)):
        tell(queue.redis, job.names, {"event": "begin"})
        told = {**said, "seconds": seconds, "incumbent": result.makespan}
        tell(queue.redis, job.names, told, result_to_json(result))
        news = until(job, lambda each: each.message == "")
    tell(queue.redis, job.names, {"event": "result"}, result_to_json(worse))

    assert (news.seconds, news.incumbent, news.result) == (4.0, found.makespan, None)
    assert job.result().plan == found.plan
    assert job.result().stop is worse.stop


def test_a_redis_that_is_gone_is_said_in_a_sentence_and_the_best_plan_stays(
    redis_of, found, monkeypatch
):
    monkeypatch.setattr(sent, "PATIENCE", 0.5)
    process, url = redis_of()
    queue = Queue(url)
    job = queue.start(found.problem, **LAZY)
    event = {"event": "progress", "seconds": 1.0, "incumbent": 2.0, "bound": 1.0, "message": "a"}
    tell(queue.redis, job.names, {**event, "better": True}, result_to_json(found))
    until(job, lambda news: news.result is not None)
    process.kill()
    process.wait()
    assert until(job, lambda news: "does not answer; trying again" in news.message).seconds == 1.0

    with pytest.raises(QueueGone, match=r"has not answered for 0\.5 s"):
        job.result()
    assert job.best.plan == found.plan
    with pytest.raises(QueueGone, match="the solve cannot be sent: the queue's Redis does not"):
        queue.start(found.problem, **LAZY)
    with pytest.raises(
        ProblemError, match=r"no Redis answers at redis://127\.0\.0\.1:\d+/0 \("
    ) as told:
        connect(url.replace("//", "//someone:secret@"))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("url", ["amqp://127.0.0.1", "127.0.0.1:6379", "redis://127.0.0.1:none/0"])
def test_what_is_no_url_of_a_redis_is_refused(url):
    with pytest.raises(ProblemError, match="redis://"):
        connect(url)


@pytest.mark.parametrize("command", [("design", "--no-browser", "--port", "8953"), ("worker",)])
def test_the_command_line_says_at_once_that_no_redis_answers(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([*command, "--queue", "redis://127.0.0.1:1/0"])

    assert left.value.code == 2
    assert "no Redis answers at redis://127.0.0.1:1/0" in capsys.readouterr().err


# The worker's part, in this process


@pytest.fixture
def bench(redis_of, monkeypatch):
    """A worker's bench, whose solves are counted and end at once without a plan."""
    begun = []

    def begin(*_args, **_given):
        begun.append(1)
        message = "no plan today"
        raise SolveError(message)

    monkeypatch.setattr(working, "start", begin)
    made = Bench(connect(redis_of()[1]), 1e9)
    return made, begun


def request_of(result):
    problem = result_to_json(result)["problem"]
    return {"problem": problem, **LAZY, "time_limit": None, "gap": None}


def events(bench, key):
    rows = bench.redis.xrange(Names(key).news)
    return [json.loads(fields[b"event"])["event"] for _, fields in rows]


def test_what_comes_twice_is_solved_once(bench, found):
    """Celery hands out again what took long: while another has it, and when it has ended."""
    bench, begun = bench
    bench.redis.set(Names("a").asked, 1)
    bench.redis.set(Names("a").beat, "another")
    bench.work("a", request_of(found))
    assert begun == []
    assert bench.redis.get(Names("a").beat) == b"another"

    bench.redis.delete(Names("a").beat)
    for _ in range(2):
        bench.work("a", request_of(found))
    assert begun == [1]
    assert events(bench, "a") == ["begin", "error"]


def test_what_nobody_asks_for_is_not_begun(bench, found):
    bench, begun = bench
    bench.redis.zadd(WAITING, {"a": 1})
    bench.work("a", request_of(found))

    assert begun == []
    assert bench.redis.zcard(WAITING) == 0


def test_what_has_ended_two_workers_is_not_given_to_a_third(bench, found):
    bench, begun = bench
    bench.redis.set(Names("a").asked, 1)
    bench.redis.set(Names("a").tries, 2)
    bench.work("a", request_of(found))

    assert begun == []
    assert events(bench, "a") == ["error"]


def test_a_worker_that_is_stopped_gives_its_solve_back(bench, found):
    bench, _ = bench
    bench.redis.set(Names("a").asked, 1)
    bench.leaving.set()
    with pytest.raises(Leaving):
        bench.work("a", request_of(found))

    assert bench.redis.zrange(WAITING, 0, -1) == [b"a"]
    assert not bench.redis.exists(Names("a").beat, Names("a").ended)
    assert int(bench.redis.get(Names("a").tries)) == 0


def test_a_worker_says_that_it_is_there_until_it_is_stopped(bench):
    bench, _ = bench
    bench.leaving.set()
    bench.register("me", 2)
    assert not bench.redis.exists(f"{WORKERS}me")


def test_what_is_in_redis_is_json_and_never_pickled(redis_of, found):
    """The message as Celery leaves it for the workers."""
    queue = Queue(redis_of()[1])
    queue.start(found.problem, **LAZY)
    message = json.loads(queue.redis.lindex(QUEUE, 0))

    assert message["content-type"] == "application/json"
    assert queue.app.conf.accept_content == ["json"]
