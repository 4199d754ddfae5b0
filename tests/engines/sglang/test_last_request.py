"""SGLang's last request that decodes, when there is no page for it."""

from types import SimpleNamespace

import pytest
from pando_kv.sglang import allocator
from pando_kv.sglang.allocator import PandoAllocator

LONGEST = 10.0  # seconds for which it waits
SLOW_TRY = 1.4  # seconds, when pandod is gone


class Ranks:
    """The calls that the allocator makes, as on rank 0."""

    is_away = False

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

    def step(self, *requests):
        """Whether SGLang decodes, and whether it aborts the last request otherwise."""
        batch = SimpleNamespace(
            reqs=requests,
            batch_size=lambda: len(requests),
            new_tokens_required_next_decode=lambda: 16,
        )
        if self.waits_to_decode(batch):
            return "is left out"
        left = list(requests)
        while not self.check(left):
            if len(left) == 1:
                return "decodes" if self.check(left) else "aborts"
            left.pop()
        return "decodes"

    def check(self, requests):
        return self.check_decode_capacity(
            num_tokens=16, tree_cache=None, requests=requests
        )


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


def test_steps_are_left_out_until_it_is_aborted(asked):
    last = request()
    while (step := asked.step(last)) == "is left out":
        assert asked.pauses.pop() <= 0.01
        assert not asked.pauses
    assert step == "aborts"
    assert LONGEST <= asked.now <= LONGEST + 0.02


def test_its_time_counts_however_long_a_try_takes(asked):
    asked.slow = SLOW_TRY
    last = request()
    while asked.step(last) == "is left out":
        pass
    # Once it is over, SGLang asks twice more before it aborts.
    assert asked.tries <= LONGEST / SLOW_TRY + 5


def test_what_others_give_back_meanwhile_is_taken(asked):
    last = request()
    asked.answers = [False, False, False, True]
    assert [asked.step(last) for _ in range(4)] == ["is left out"] * 3 + ["decodes"]
    # The next time it has all the time again.
    asked.now, asked.answers = 1000.0, [False]
    assert asked.step(last) == "is left out"


def test_where_all_others_were_retracted_it_waits_in_the_step(asked):
    """SGLang aborts it otherwise; another engine was faster than it."""
    asked.answers = [False] * 5 + [True]
    assert asked.step(request(), request()) == "decodes"
    assert len(asked.pauses) == 3
    asked.answers = [False]
    assert asked.step(request(), request()) == "aborts"
    assert sum(asked.pauses) <= LONGEST + 1


def test_no_step_is_held_while_pandod_is_away(asked):
    asked.cache.calls.is_away = True
    assert asked.step(request(), request()) == "aborts"
    assert not asked.pauses
    assert asked.step(request()) == "is left out"
    assert len(asked.pauses) == 1


def test_it_waits_for_no_other_engine_while_its_own_requests_end(asked):
    """SGLang skips a step then, in which they give their pages back."""
    assert not asked.check([request()])
    assert not asked.pauses


def test_it_does_not_wait_once_it_is_not_wanted(asked):
    last = request()
    assert asked.step(last) == "is left out"
    last.to_finish = "aborted by its user"
    assert asked.step(last) == "aborts"


def test_several_requests_are_retracted_at_once(asked):
    for _ in range(3):
        assert not asked.check([request(), request()])
    assert not asked.pauses


def test_ranks_do_what_the_clock_of_rank_0_says(asked):
    asked.cache.calls.said = [True, True, False, False, False]
    last = request()
    asked.now = 500.0
    assert asked.step(last) == "is left out"
    asked.now = 5000.0
    assert asked.step(last) == "is left out"
    assert asked.step(last) == "aborts"
