"""Publications of SGLang's adapter on a real pandod, without an SGLang engine."""

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cutter import Cutter
from eventually import eventually
from impatience import impatient
from pando_kv import Client
from pando_kv._connection import Connection
from pando_kv.sglang.calls import Calls
from pando_kv.sglang.device_fence import NoFence
from pando_kv.sglang.held_prefix import HeldPrefix
from pando_kv.sglang.publisher import Publisher
from pandod_process import Pandod

PAGE = 16
TOKENS = np.arange(64 * PAGE, dtype=np.uint32)


class Allocator:
    owned = 0

    def __init__(self):
        self.added = []

    def add(self, page_ids):
        self.added += page_ids.tolist()

    def take_spare(self):
        return np.empty(0, np.uint32)


class Moment:
    def __init__(self, is_past):
        self._is_past, self.was_awaited = is_past, False

    def is_past(self):
        return self._is_past

    def wait(self):
        self.was_awaited = True


class Device:
    """A stand-in for a GPU whose steps overlap with scheduling, and are done or not."""

    unwritten_tokens = 1

    def __init__(self, is_done):
        self.moment = Moment(is_done)

    def now(self):
        return self.moment


class Rank:
    """One request, with the parts of a scheduler and cache that a Publisher reads."""

    def __init__(self, calls, pages, fence=None, start=0):
        self.calls, self.fence, self.weights = calls, fence or NoFence(), ""
        self.page_size = PAGE
        self.token_to_kv_pool_allocator = Allocator()
        self.tokens = TOKENS + np.uint32(start)
        admission = calls.admit(self.tokens[: pages * PAGE], None, pages * PAGE)
        slots = admission.reserved.astype(np.int64)[:, None] * PAGE + np.arange(PAGE)
        row = torch.from_numpy(slots.reshape(1, -1))
        self.req_to_token_pool = SimpleNamespace(req_to_token=row)
        self.is_finished = False
        self.request = SimpleNamespace(
            kv=SimpleNamespace(req_pool_idx=0, cache_protected_len=0),
            full_untruncated_fill_ids=self.tokens,
            priority=0,
            finished=lambda: self.is_finished,
        )
        self.request.last_node = self.held = HeldPrefix(
            lock_id=admission.lock_id, request=self.request
        )
        self.publisher = Publisher(self)

    def computed(self, pages):
        self.publisher.checkpoint(self.request, pages * PAGE)
        self.publisher.settle(self.held)

    def finish(self, tokens):
        self.is_finished = True
        self.publisher.checkpoint(self.request, tokens)
        self.publisher.settle_ended()
        if self.held.lock_id:
            self.calls.release([self.held.lock_id])


@pytest.fixture
def pandod(tmp_path):
    server = Pandod(tmp_path, pool_pages=128)
    server.start()
    yield server
    server.close()


@pytest.fixture
def operator(pandod):
    with Client(pandod.address, name="operator") as client:
        yield client
        assert client.check_invariants() == []


@pytest.fixture
def calls(pandod):
    with Client(pandod.address, name="engine") as client:
        yield Calls(client, lambda answer: answer)


def found(operator, begin=0):
    return operator.match_prefix(TOKENS[begin:]).matched_tokens


def test_a_chunk_is_not_published_in_the_place_of_one_that_was_lost(
    pandod, operator, tmp_path
):
    with (
        Cutter(tmp_path / "cutter.sock", pandod.socket) as cutter,
        Client(cutter.address, name="engine", lane=False) as client,
    ):
        rank = Rank(Calls(client, lambda answer: answer), pages=48)
        cutter.deafen()
        with impatient(client):
            rank.computed(16)
        cutter.cut()
        rank.computed(32)
        rank.finish(48 * PAGE)
        assert found(operator, begin=16 * PAGE) == 0
        eventually(lambda: operator.stats().locks == 0)


def test_kv_of_other_weights_is_not_published(calls, operator):
    rank = Rank(calls, pages=48)
    rank.computed(16)
    rank.weights = "v2"
    rank.computed(32)
    rank.finish(48 * PAGE)
    assert found(operator) == 16 * PAGE
    assert operator.stats().locks == 0


def test_what_was_late_is_not_published_twice(calls, operator):
    """The next chunk is published at once, together with the late chunk."""
    device = Device(is_done=False)
    rank = Rank(calls, pages=48, fence=device)
    rank.computed(16)
    assert found(operator) == 0
    device.moment = Moment(True)
    rank.computed(32)
    rank.publisher.publish_late()
    assert rank.held.tokens == 32 * PAGE
    rank.finish(48 * PAGE)
    assert operator.stats().locks == 0


def test_a_page_that_a_step_under_way_may_write_is_not_published(calls, operator):
    rank = Rank(calls, pages=8, fence=Device(is_done=False))
    rank.finish(4 * PAGE)
    assert found(operator) == 3 * PAGE


def test_without_overlap_the_last_page_is_published(calls, operator):
    Rank(calls, pages=8).finish(4 * PAGE)
    assert found(operator) == 4 * PAGE


@pytest.fixture
def trips(monkeypatch):
    """Returns the list of the calls to pandod that the caller waited for."""
    made = []
    exchange = Connection._exchange_raw

    def counted(connection, method, *rest):
        made.append(method.path.rpartition("/")[2])
        return exchange(connection, method, *rest)

    monkeypatch.setattr(Connection, "_exchange_raw", counted)
    return made


def test_few_pages_go_along_with_the_next_call(pandod, operator, trips):
    with Client(pandod.address, name="engine", lane=False) as client:
        calls = Calls(client, lambda answer: answer)
        rank = Rank(calls, pages=16)
        trips.clear()
        rank.publisher.checkpoint(rank.request, 200)
        rank.publisher.publish_late()
        assert not trips
        rank.publisher.publish_late(goes_along=True)
        admission = calls.admit(TOKENS[:200], None, 0)
        assert admission.tokens == 192
        assert trips == ["Batch"]
        assert rank.held.tokens == 192
        calls.release([admission.lock_id])
        rank.finish(16 * PAGE)
        assert found(operator) == 16 * PAGE
        assert operator.stats().locks == 0


def test_few_pages_go_along_with_a_call_that_cannot_be_made(pandod, operator):
    with Client(pandod.address, name="engine", lane=False) as client:
        calls = Calls(client, lambda answer: answer)
        rank = Rank(calls, pages=16)
        rank.publisher.checkpoint(rank.request, 200)
        rank.publisher.publish_late(goes_along=True)
        assert calls.admit(TOKENS, None, 1_000_000) is None
        assert found(operator) == 192
        rank.finish(16 * PAGE)
        assert operator.stats().locks == 0


def test_few_pages_that_do_not_go_along_are_published_in_the_end(calls, operator):
    rank = Rank(calls, pages=16)
    rank.publisher.checkpoint(rank.request, 200)
    before = operator.stats().counters.inserts
    rank.finish(16 * PAGE)
    assert found(operator) == 16 * PAGE
    assert operator.stats().counters.inserts == before + 1


def test_a_device_is_waited_for_once_for_all_publications_of_a_step(
    calls, operator, monkeypatch
):
    reads = []
    cpu = torch.Tensor.cpu
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda tensor: reads.append(tensor) or cpu(tensor)
    )
    ranks = [Rank(calls, pages=20, start=10_000 * n) for n in range(4)]
    rows = [rank.req_to_token_pool.req_to_token for rank in ranks]
    ranks[0].req_to_token_pool.req_to_token = torch.cat(rows)
    for row, rank in enumerate(ranks):
        rank.request.kv.req_pool_idx = row
    publisher = Publisher(ranks[0])
    ranks[3].is_finished = True
    with publisher.together():
        for rank, pages in zip(ranks, (16, 17, 3, 20), strict=True):
            publisher.checkpoint(rank.request, pages * PAGE)
        assert not reads
    assert len(reads) == 1
    for rank, pages in zip(ranks, (16, 17, 0, 20), strict=True):
        publisher.settle(rank.held)
        assert operator.match_prefix(rank.tokens).matched_tokens == pages * PAGE
        if rank.held.lock_id:
            calls.release([rank.held.lock_id])
    publisher.settle_ended()


def test_what_is_asked_for_within_a_step_is_begun_there(calls, operator):
    rank = Rank(calls, pages=20)
    with rank.publisher.together():
        rank.publisher.checkpoint(rank.request, 16 * PAGE)
        rank.publisher.settle(rank.held)
        assert found(operator) == 16 * PAGE
    calls.release([rank.held.lock_id])


@pytest.mark.parametrize("is_done", [True, False], ids=["rank 0 is done", "is not"])
def test_ranks_do_what_the_device_of_rank_0_says(pandod, operator, is_done):
    """The devices of the ranks differ, and the ranks still make the same calls."""
    answers = SimpleQueue()

    def lead(answer):
        answers.put(answer)
        return answer

    def serve(rank):
        rank.computed(16)
        rank.publisher.publish_late()
        rank.publisher.settle(rank.held)
        return rank

    with Client(pandod.address, name="rank 0") as client, ThreadPoolExecutor(2) as pool:
        ranks = [
            pool.submit(lambda: serve(Rank(Calls(client, lead), 32, Device(is_done)))),
            pool.submit(
                lambda: serve(
                    Rank(Calls(None, lambda _: answers.get()), 32, Device(not is_done))
                )
            ),
        ]
        first, second = (rank.result() for rank in ranks)
        assert answers.empty()
        assert first.held.tokens == second.held.tokens == (16 * PAGE if is_done else 0)
        assert second.fence.moment.was_awaited == is_done
        first.calls.release([first.held.lock_id])
