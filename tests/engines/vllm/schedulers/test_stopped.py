"""vLLM's own Scheduler beside a stopped pandod. No step waits for pandod, and nothing
stays locked or reserved."""

import contextlib
import os
import random
import signal
from pathlib import Path

import pytest
from engines.vllm.scheduler_alone import SchedulerAlone
from engines.vllm.schedulers.conftest import PAGES
from engines.vllm.start import prompt
from eventually import eventually
from pando_kv._presence import SCHEDULER_PATIENCE

# Seconds. A call that waited so long for its answer would not end within a test.
LONG = 1000.0
SEED = int(os.environ.get("PANDO_TEST_SEED", "0"))
PROGRAMS = int(os.environ.get("PANDO_TEST_PROGRAMS", "50"))


class Server:
    """A pandod that a test stops and continues."""

    def __init__(self, pid):
        self._pid = pid
        self.is_stopped = False

    def stop(self):
        os.kill(self._pid, signal.SIGSTOP)
        eventually(lambda: self._states() == {"T"})
        self.is_stopped = True

    def go_on(self):
        os.kill(self._pid, signal.SIGCONT)
        self.is_stopped = False

    def _states(self):
        """Returns the states of the threads. They run on for a moment after SIGSTOP."""
        tasks = Path(f"/proc/{self._pid}/task").glob("*/stat")
        return {task.read_text().rpartition(")")[2].split()[0] for task in tasks}


@pytest.fixture
def server(pandod):
    server = Server(pandod.pid)
    yield server
    server.go_on()


@contextlib.contextmanager
def started(model, pandod):
    with contextlib.closing(
        SchedulerAlone(model, pandod.address, blocks=PAGES)
    ) as alone:
        yield alone


def test_no_step_waits_for_a_pandod_that_is_known_to_be_away(
    model, pandod, server, operator
):
    with started(model, pandod) as alone:
        presence = alone.client._connection.presence
        assert presence.away_after == SCHEDULER_PATIENCE < 1
        for n in range(4):
            alone.add(str(n), prompt(150, seed=n), new=40)
        for _ in range(6):
            alone.step()
        server.stop()
        presence.away_after = 0.1
        alone.add("finds out", prompt(150, seed=9), new=3)
        for _ in range(200):
            alone.step()
            if alone.client.is_away:
                break
        assert alone.client.is_away
        presence.away_after = alone.client._connection.timeout = LONG

        alone.add("late", prompt(150, seed=10), new=3)
        alone.abort("0")
        for _ in range(100):
            alone.step()
        alone.scheduler.connector.reset_cache()
        alone.step()
        server.go_on()
        eventually(lambda: not alone.client.is_away)
        alone.run()
        eventually(lambda: operator.stats().locks == 0)


def run_program(alone, server, choose):
    """Runs a random program of requests, and stops pandod now and then."""
    live = []
    for n in range(choose.randrange(10, 40)):
        what = choose.choices(
            ["step", "add", "abort", "reset", "stand still", "go on"],
            [12, 6, 2, 2, 3, 3],
        )[0]
        if what == "add":
            tokens = prompt(choose.randrange(1, 400), seed=choose.randrange(4))
            live.append(f"{id(choose)} {n}")
            alone.add(live[-1], tokens, new=choose.randrange(1, 40))
        elif what == "abort" and live:
            alone.abort(live.pop(choose.randrange(len(live))))
        elif what == "reset":
            alone.scheduler.connector.reset_cache()
            # Later calls give back what the reset closed. Stop pandod before them, with
            # no request left.
            if choose.random() < 0.5 and not server.is_stopped:
                alone.abort(*live)
                live.clear()
                server.stop()
        elif what == "stand still" and not server.is_stopped:
            server.stop()
        elif what == "go on" and server.is_stopped:
            server.go_on()
        else:
            alone.step()
    server.go_on()
    eventually(lambda: not alone.client.is_away)
    alone.run()


def test_silences_leave_no_lock_and_no_page(model, pandod, server, operator):
    seeds = range(SEED, SEED + PROGRAMS)
    with started(model, pandod) as alone:
        alone.client._connection.presence.away_after = 0.05
        for seed in seeds:
            print("seed", seed)
            run_program(alone, server, random.Random(seed))
            eventually(lambda: operator.stats().locks == 0)
    eventually(lambda: operator.stats().pages.reserved == 0)


def test_an_engine_makes_no_call_while_the_pool_is_full(
    model, pandod, operator, monkeypatch
):
    monkeypatch.setattr("pando_kv._room._LONGEST", LONG)
    with started(model, pandod) as alone:
        held = operator.allocate_pages(PAGES, at_least=0)
        for n in range(3):
            alone.add(str(n), prompt(150, seed=n), new=2)
        assert not alone.step()
        calls = []
        send = type(alone.client._connection).send

        def counted(connection, call, *given):
            calls.append(call.method.path)
            return send(connection, call, *given)

        with monkeypatch.context() as patch:
            patch.setattr(type(alone.client._connection), "send", counted)
            # Without the native module, all calls go through send().
            patch.setattr(type(alone.client._connection), "requests", None)
            for _ in range(50):
                assert not alone.step()
        assert calls == []
        operator.free_pages(held)
        alone.run()
    assert operator.stats().locks == 0
