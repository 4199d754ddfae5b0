"""SGLang's last request that decodes, when there is no page for it."""

from types import SimpleNamespace

import pytest
from pando_kv.sglang import allocator
from pando_kv.sglang.allocator import PandoAllocator

LONGEST = 1.0  # seconds for which it waits
SLOW_TRY = 1.4  # seconds, when pandod is gone


class Ranks:
    """The calls that the allocator makes, as on rank 0."""

    def __init__(self):
        self.said = None  # of rank 0, on another rank

    def agree(self, is_so):
        return is_so if self.said is None else self.said.pop(0)


class Asked(PandoAllocator):
    """As SGLang has it. `answers` say whether a page is there, one after the other; a
    try takes `slow` seconds."""

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
        """Whether it leaves out a step of these requests."""
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
    # The next time it has all the time again.
    asked.now, asked.answers = 1000.0, [False]
    assert asked.leaves_out(last)


def test_no_step_waits_for_several(asked):
    """SGLang retracts all but one of them."""
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
