"""The last request that decodes in SGLang, when there is no page for it."""

from types import SimpleNamespace

import pytest
from pando_kv.sglang import allocator
from pando_kv.sglang.allocator import PandoAllocator
from pando_kv.sglang.hooks import _retract_the_last
from pando_kv.sglang.prefix_cache import PandoPrefixCache

LONGEST = 1.0  # seconds that the last request waits for a page
SLOW_TRY = 1.4  # seconds that a try takes when pandod is gone


class Ranks:
    """A stand-in for the allocator's calls, as on rank 0 unless `said` is set."""

    is_away = False

    def __init__(self):
        self.said = None  # the answers of rank 0, on another rank

    def agree(self, is_so):
        return is_so if self.said is None else self.said.pop(0)


class Asked(PandoAllocator):
    """An allocator with a clock and a supply of pages that the test controls.

    `answers` say, try by try, whether a page is there. A try takes `slow` seconds."""

    page_size = 16
    slow = 0.0

    def __init__(self):
        self.now, self.answers, self.tries = 0.0, [False], 0
        self.cache = SimpleNamespace(begin_decode=lambda: None, calls=Ranks())

    def clock(self):
        return self.now

    def secure(self, pages):
        self.now += self.slow
        self.tries += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def leaves_out(self, *requests):
        """Returns whether the allocator leaves out a step of these requests."""
        batch = SimpleNamespace(
            reqs=requests,
            batch_size=lambda: len(requests),
            new_tokens_required_next_decode=lambda: 16,
        )
        return self.waits_to_decode(batch)


@pytest.fixture
def asked(monkeypatch):
    made = Asked()
    made.pauses = []

    def sleep(seconds):
        made.now += seconds
        made.pauses.append(seconds)

    monkeypatch.setattr(allocator.time, "sleep", sleep)
    return made


def request():
    return SimpleNamespace(to_finish=None)


def test_steps_are_left_out_until_it_is_retracted(asked):
    last = request()
    while asked.leaves_out(last):
        assert asked.pauses.pop() <= 0.01
        assert not asked.pauses
    assert LONGEST <= asked.now <= LONGEST + 0.02


def test_its_time_counts_however_long_a_try_takes(asked):
    asked.slow = SLOW_TRY
    last = request()
    while asked.leaves_out(last):
        pass
    assert asked.tries <= 2


def test_what_others_give_back_meanwhile_is_taken(asked):
    last = request()
    asked.answers = [False, False, False, True]
    assert [asked.leaves_out(last) for _ in range(4)] == [True, True, True, False]
    # A new shortage has the full time again.
    asked.now, asked.answers = 1000.0, [False]
    assert asked.leaves_out(last)


def test_while_pandod_is_away_it_is_not_retracted(asked):
    """A request retracted at that time could not publish what it has computed."""
    last = request()
    asked.cache.calls.is_away = True
    for _ in range(300):
        assert asked.leaves_out(last)
    assert asked.now > 2 * LONGEST
    asked.cache.calls.is_away = False
    assert not asked.leaves_out(last)


def test_no_step_waits_for_several(asked):
    """SGLang itself retracts all of several requests except one."""
    assert not asked.leaves_out(request(), request())
    assert not asked.pauses


def test_no_step_waits_for_one_that_is_not_wanted(asked):
    last = request()
    assert asked.leaves_out(last)
    last.to_finish = "aborted by its user"
    assert not asked.leaves_out(last)


def test_ranks_do_what_the_clock_of_rank_0_says(asked):
    asked.cache.calls.said = [True, True, False]
    last = request()
    asked.now = 500.0
    assert asked.leaves_out(last)
    asked.now = 5000.0
    assert asked.leaves_out(last)
    assert not asked.leaves_out(last)


class Batch:
    """A stand-in for SGLang's batch, in which no request finds a page."""

    def __init__(self, *reqs, cache=None):
        self.reqs = list(reqs)
        self.tree_cache = cache or PandoPrefixCache.__new__(PandoPrefixCache)

    def is_empty(self):
        return not self.reqs

    def retract(self, keep=0):
        """Retracts as retract_decode() does; aborts the last one unless `keep` stay."""
        *others, last = self.reqs[keep:]
        self.reqs = self.reqs[:keep]
        if keep:
            return [*others, last], 0.5, []
        last.to_finish = "aborted by SGLang"
        return others, 0.5, [last]


def request_of_batch(**said):
    return SimpleNamespace(to_finish=None, beam_group=None, **said)


def test_the_last_one_waits_in_the_queue_where_sglang_aborts_it():
    first, last = request_of_batch(), request_of_batch()
    batch = Batch(first, last)
    assert _retract_the_last(Batch.retract, batch) == ([first, last], 0.5, [])
    assert last.to_finish is None


def test_where_another_goes_on_the_others_are_retracted_as_by_sglang():
    stays, goes = request_of_batch(), request_of_batch()
    answer = _retract_the_last(lambda batch: batch.retract(keep=1), Batch(stays, goes))
    assert answer == ([goes], 0.5, [])


def test_one_that_its_user_aborted_is_aborted():
    last = request_of_batch()
    last.to_finish = "aborted by its user"
    assert _retract_the_last(Batch.retract, Batch(last)) == ([], 0.5, [last])
    assert last.to_finish is not None


def test_over_another_cache_sglang_aborts_it():
    last = request_of_batch()
    batch = Batch(last, cache=SimpleNamespace())
    assert _retract_the_last(Batch.retract, batch) == ([], 0.5, [last])
