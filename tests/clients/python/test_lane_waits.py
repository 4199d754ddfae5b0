"""Threads and tasks that wait for answers on a lane, and interrupts of such waits."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from eventually import eventually
from interrupted import interrupted_when
from lanes import needs_lane
from pando_kv import (
    Client,
)
from pando_kv._aio_lane import AnswerWaits
from pando_kv.aio import AsyncClient
from pandod_process import PAGE_TOKENS
from prompts import prompt

pytestmark = needs_lane

LONG = 100.0


def test_answers_come_in_another_order_than_calls(pandod, client):
    with Client(pandod.address) as owner, ThreadPoolExecutor(1) as pool:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        waiting = pool.submit(
            client.match_prefix,
            prompt(1),
            lock=True,
            reserve_tokens=PAGE_TOKENS,
            pending_wait=LONG,
        )
        eventually(lambda: client.stats().waiting_matches == 1)
        for _ in range(100):
            client.match_prefix(prompt(2))
        assert not waiting.done()
        first.lock.release()
        waiting.result().lock.release()


def test_other_threads_run_while_a_call_waits(pandod, client):
    with Client(pandod.address) as owner, ThreadPoolExecutor(1) as pool:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        waiting = pool.submit(
            client.match_prefix, prompt(1), lock=True, pending_wait=LONG
        )
        eventually(lambda: client.stats().waiting_matches == 1)
        first.lock.release()
        waiting.result().lock.release()


def test_a_wait_ends_with_its_time(client, pandod):
    with Client(pandod.address) as owner:
        first = owner.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
        match = client.match_prefix(prompt(1), lock=True, pending_wait=0.05)
        assert match.pending.name == "TIMED_OUT"
        match.lock.release()
        first.lock.release()


def test_a_call_can_be_interrupted(pandod):
    code = f"""
import signal, threading, _thread, time
from pando_kv import Client
# Who runs in the background is started with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client({pandod.address!r}) as owner, Client({pandod.address!r}) as client:
    owner.match_prefix(range(16), lock=True, reserve_tokens=16)
    def interrupt():
        while client.stats().waiting_matches == 0:
            time.sleep(0.01)
        _thread.interrupt_main()
    threading.Thread(target=interrupt).start()
    try:
        client.match_prefix(range(16), lock=True, pending_wait=500)
    except KeyboardInterrupt:
        print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_what_an_interrupted_call_waited_for_is_not_taken_later(pandod, client, caller):
    first = client.match_prefix(prompt(1), lock=True, reserve_tokens=PAGE_TOKENS)
    with interrupted_when(lambda: client.stats().waiting_matches == 1):
        caller.match_prefix(prompt(1), lock=True, reserve_tokens=64, pending_wait=LONG)
    # The interrupted call waits no longer, although no page was published.
    eventually(lambda: client.stats().waiting_matches == 0)
    client.free_pages(first.reserved_page_ids)
    first.lock.release()
    eventually(lambda: (client.stats().locks, client.stats().pages.reserved) == (0, 0))


def test_tasks_wait_for_many_answers_at_once(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            assert worker.transport == "lane"
            first = client.match_prefix(
                prompt(1), lock=True, reserve_tokens=PAGE_TOKENS
            )
            waiting = [
                asyncio.create_task(
                    worker.match_prefix(prompt(1), lock=True, pending_wait=LONG)
                )
                for _ in range(30)
            ]
            while client.stats().waiting_matches < 30:
                await asyncio.sleep(0.01)
            # The loop keeps running meanwhile, and pandod answers other calls.
            assert (await worker.match_prefix(prompt(2))).matched_tokens == 0
            client.insert(
                prompt(1), first.reserved_page_ids, lock=first.lock, unlock=True
            )
            for match in await asyncio.gather(*waiting):
                assert match.matched_tokens == PAGE_TOKENS
                await match.lock.release()
            assert (await worker.gauges()).pages.protected == 0

    asyncio.run(run())


def test_what_a_cancelled_task_was_to_bring_is_given_back(pandod, client):
    async def run():
        async with AsyncClient(pandod.address) as worker:
            first = client.match_prefix(
                prompt(1), lock=True, reserve_tokens=PAGE_TOKENS
            )
            task = asyncio.create_task(
                worker.match_prefix(
                    prompt(1), lock=True, reserve_tokens=32, pending_wait=LONG
                )
            )
            while client.stats().waiting_matches == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            first.lock.release()
            client.free_pages(first.reserved_page_ids)
            await asyncio.to_thread(
                eventually,
                lambda: (
                    (client.gauges().pages.reserved, client.stats().locks) == (0, 0)
                ),
            )

    asyncio.run(run())


class LaneOfOneAnswer:
    """A stand-in for a lane whose first answer comes just before the caller sleeps."""

    def __init__(self):
        self.changed = threading.Condition()
        self.answers = 0
        self.looks = 0

    def await_answers(self, seen, _timeout):
        with self.changed:
            self.looks += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.answers != seen)

    def answer_and_await_look(self):
        with self.changed:
            self.answers += 1
            looks = self.looks
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.looks > looks)


class CallThatIsAnsweredAtOnce:
    def __init__(self, lane):
        self.lane = lane
        self.is_done = False

    def done(self):
        return self.is_done

    def wake_lane(self):
        self.is_done = True
        self.lane.answer_and_await_look()
        return True


class CallThatIsNotAnswered:
    def done(self):
        return False

    def wake_lane(self):
        return True


def test_an_answer_that_comes_before_its_task_sleeps_wakes_it():
    async def run():
        lane = LaneOfOneAnswer()
        waits = AnswerWaits(lane)
        other = asyncio.create_task(waits.until_done(CallThatIsNotAnswered(), 100))
        while lane.looks == 0:
            await asyncio.sleep(0)
        try:
            await waits.until_done(CallThatIsAnsweredAtOnce(lane), 10)
        finally:
            other.cancel()
            await asyncio.wait([other])
            # One more answer lets the waiting thread end.
            with lane.changed:
                lane.answers += 1
                lane.changed.notify_all()

    asyncio.run(run())
