"""What SGLang's last request that decodes does when there is no page for it."""

from types import SimpleNamespace

import pytest
from pando_kv.sglang import allocator
from pando_kv.sglang.allocator import PandoAllocator


@pytest.fixture
def pauses(monkeypatch):
    """How often the scheduler's thread has waited."""
    taken = []
    monkeypatch.setattr(allocator.time, "sleep", taken.append)
    return taken


@pytest.fixture
def has_room(monkeypatch):
    """A call that says whether a page is there, one answer after the other."""

    def says(*answers):
        given = iter(answers)
        monkeypatch.setattr(
            PandoAllocator, "secure", lambda *_: next(given, answers[-1])
        )

    return says


@pytest.fixture
def asked():
    """As SGLang asks before each step, and once more before it aborts."""
    made = PandoAllocator.__new__(PandoAllocator)
    made.page_size = 16
    made.cache = SimpleNamespace(begin_decode=lambda: None)

    def ask(requests):
        return made.check_decode_capacity(
            num_tokens=16, tree_cache=None, requests=requests
        )

    return ask


def test_it_waits_for_no_other_engine_while_its_own_requests_end(
    asked, has_room, pauses
):
    """SGLang skips a step then, in which they give their pages back."""
    has_room(False, True)
    assert not asked(["last"])
    assert asked(["last"])
    assert not pauses


def test_it_waits_once_before_it_is_aborted(asked, has_room, pauses):
    has_room(False)
    assert not asked(["last"])
    assert not asked(["last"])
    assert len(pauses) == 1000


def test_what_others_give_back_meanwhile_is_taken(asked, has_room, pauses):
    has_room(False, False, False, True)
    assert not asked(["last"])
    assert asked(["last"])
    assert len(pauses) == 2


def test_several_requests_are_retracted_at_once(asked, has_room, pauses):
    has_room(False)
    for _ in range(3):
        assert not asked(["one", "two"])
    assert not pauses
