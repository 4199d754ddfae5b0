"""Eviction by policies, for free pages, and by quotas of namespace classes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from eventually import eventually
from pandod_process import PAGE_TOKENS, POOL_PAGES, Pandod
from protocol_worker import ProtocolWorker, protocol_worker

USABLE = POOL_PAGES - 1


def prompt(pages: int, first_token: int = 0) -> list[int]:
    return list(range(first_token, first_token + pages * PAGE_TOKENS))


# Policies.


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("lru", "cab"),
        ("lfu", "cba"),
        ("fifo", "abc"),
        ("mru", "bac"),
        ("filo", "cba"),
        ("priority", "bac"),
        ("slru", "cba"),
        ("reuse", "cab"),
    ],
)
def test_the_policy_of_the_option_says_what_goes_first(start_pandod, policy, order):
    prompts = {name: prompt(1, 1000 * i) for i, name in enumerate("abc")}
    with protocol_worker(start_pandod(eviction_policy=policy).address) as worker:
        assert worker.stats().eviction_policy == policy
        for name, priority in {"a": 2, "b": 1, "c": 3}.items():
            worker.cache(prompts[name], priority=priority)
        worker.cache(prompts["a"])
        worker.call("MatchPrefix", tokens=prompts["b"])

        evicted = ""
        while len(evicted) < len(prompts):
            assert worker.call("Evict", pages=1).evicted_pages == 1
            evicted += "".join(
                name
                for name, tokens in prompts.items()
                if name not in evicted and not worker.cached(tokens)
            )
        assert evicted == order


# Free pages.


def test_pages_are_kept_free_in_the_background(start_pandod):
    pandod = start_pandod(low_free_pages=16, high_free_pages=24)
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(USABLE - 16))
        # The free pages are not below the lower mark.
        assert worker.stats().pages.free == 16
        worker.cache(prompt(1, 5000))
        eventually(lambda: worker.stats().pages.free == 24)
        stats = worker.stats()
        assert stats.counters.evicted_pages_for_watermark == 9
        assert stats.counters.evicted_pages_for_allocation == 0
        assert worker.violations() == []


def test_what_is_locked_is_not_evicted_to_keep_pages_free(start_pandod):
    pandod = start_pandod(low_free_pages=30, high_free_pages=40)
    with protocol_worker(pandod.address) as worker:
        admission = worker.admit(prompt(USABLE)).get()
        worker.call(
            "Insert",
            lock_id=admission.lock_id,
            lock_action="LOCK_ACTION_RELOCK",
            prompt_tokens=USABLE * PAGE_TOKENS,
            page_ids=admission.reserved_page_ids,
        )
        assert worker.stats().pages.protected == USABLE
        worker.unlock(admission)
        eventually(lambda: worker.stats().pages.free == 40)
        assert worker.cached(prompt(USABLE)) == (USABLE - 40) * PAGE_TOKENS


# Quotas. Of the 63 pages, gold has a floor of 10 and a cap of 30.

QUOTAS = """
quotas:
  - {class: gold, extra_key: "gold/*", floor_pages: 10, cap_pages: 30}
  - {class: trial, extra_key: "trial-*", cap_pages: 20}
"""
GOLD = {"extra_key": "gold/a"}
MORE_GOLD = {"extra_key": "gold/b"}
TRIAL = {"extra_key": "trial-1"}
OVER_QUOTA = ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
EXHAUSTED = ("RESOURCE_EXHAUSTED", "POOL_EXHAUSTED")


@pytest.fixture
def pandod(start_pandod: Callable[..., Pandod], tmp_path: Path) -> Pandod:
    config = tmp_path / "pando.yaml"
    config.write_text(QUOTAS)
    return start_pandod(config=config)


def pages_of_classes(worker: ProtocolWorker) -> dict[str, tuple[int, int]]:
    """Returns the reserved and cached pages of each class."""
    return {
        quota.name: (quota.reserved_pages, quota.cached_pages)
        for quota in worker.stats().quota_classes
    }


def allocate(worker: ProtocolWorker, pages: int, namespace=None):
    return worker.start("AllocatePages", pages=pages, namespace=namespace)


def test_a_class_gets_no_more_than_its_cap(pandod):
    with protocol_worker(pandod.address) as worker:
        held = allocate(worker, 20, GOLD).get()
        assert allocate(worker, 11, MORE_GOLD).failure() == OVER_QUOTA
        reserve = {"namespace": MORE_GOLD, "reserve_tokens": 11 * PAGE_TOKENS}
        assert worker.admit([], **reserve).failure() == OVER_QUOTA
        before = worker.stats()
        assert before.counters.quota_rejections == 2
        assert before.locks == 0
        # The class may take back what it freed, and others may take the rest.
        worker.call("FreePages", page_ids=held.page_ids[:1])
        assert len(allocate(worker, 11, MORE_GOLD).get().page_ids) == 11
        assert len(allocate(worker, USABLE - 30).get().page_ids) == USABLE - 30
        assert pages_of_classes(worker) == {
            "gold": (30, 0),
            "trial": (0, 0),
            "": (USABLE - 30, 0),
        }


def test_a_class_at_its_cap_evicts_its_own_pages_only(pandod):
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(5))
        worker.cache(prompt(20), namespace=TRIAL)
        allocate(worker, 6, TRIAL).get()
        assert pages_of_classes(worker) == {
            "gold": (0, 0),
            "trial": (6, 14),
            "": (0, 5),
        }
        assert worker.stats().counters.evicted_pages_for_quota == 6
        assert worker.violations() == []


def test_what_is_locked_counts_for_the_cap_and_stays(pandod):
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(20), namespace=TRIAL)
        worker.call("Lock", tokens=prompt(15), namespace=TRIAL)
        assert allocate(worker, 6, TRIAL).failure() == OVER_QUOTA
        assert worker.cached(prompt(20), namespace=TRIAL) == 20 * PAGE_TOKENS
        allocate(worker, 5, TRIAL).get()
        assert worker.cached(prompt(20), namespace=TRIAL) == 15 * PAGE_TOKENS


def test_nobody_evicts_another_class_below_its_floor(pandod):
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(15), namespace=GOLD)
        worker.cache(prompt(10), namespace=TRIAL)
        assert allocate(worker, USABLE - 9).failure() == EXHAUSTED
        assert pages_of_classes(worker)["gold"] == (0, 15)
        allocate(worker, USABLE - 10).get()
        assert pages_of_classes(worker) == {
            "gold": (0, 10),
            "trial": (0, 0),
            "": (USABLE - 10, 0),
        }
        assert worker.call("Evict", pages=USABLE).evicted_pages == 0


def test_a_class_may_evict_its_own_pages_below_its_floor(pandod):
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(10), namespace=GOLD)
        allocate(worker, USABLE - 10).get()
        allocate(worker, 4, MORE_GOLD).get()
        assert pages_of_classes(worker)["gold"] == (4, 6)


def test_only_a_flush_empties_a_class_that_has_its_floor(pandod):
    with protocol_worker(pandod.address) as worker:
        worker.cache(prompt(12), namespace=GOLD)
        assert worker.call("Evict", pages=USABLE).evicted_pages == 2
        assert worker.call("Flush").evicted_pages == 10
        assert pages_of_classes(worker)["gold"] == (0, 0)


def test_pages_may_not_join_a_class_over_its_cap(pandod):
    with protocol_worker(pandod.address) as worker:
        pages = allocate(worker, 21).get().page_ids
        insert = {"tokens": prompt(21), "page_ids": pages, "namespace": TRIAL}
        assert worker.failure("Insert", **insert) == OVER_QUOTA
        insert |= {"tokens": prompt(20), "page_ids": pages[:20]}
        worker.call("Insert", **insert)
        assert pages_of_classes(worker)["trial"] == (0, 20)


def test_without_quotas_there_are_no_classes(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        assert pages_of_classes(worker) == {}


# Hints of inserts.

SOON = {"expected_reuse": "EXPECTED_REUSE_SOON"}
ENDED = {"expected_reuse": "EXPECTED_REUSE_ENDED"}
RETAINING = """
quotas:
  - {class: patient, extra_key: patient, max_retention_seconds: 600}
"""
PATIENT = {"extra_key": "patient"}


@pytest.fixture
def retaining(start_pandod: Callable[..., Pandod], tmp_path: Path) -> Pandod:
    config = tmp_path / "pando.yaml"
    config.write_text(RETAINING)
    return start_pandod(config=config)


def test_what_has_ended_goes_first_when_it_is_unlocked(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        worker.cache(prompt(1, 1000))
        worker.cache(prompt(1), **ENDED)
        worker.cache(prompt(1, 2000))
        lock = worker.call("Lock", tokens=prompt(1))
        worker.call("Insert", lock_id=lock.lock_id, lock_action=2, **ENDED)
        assert worker.call("Evict", pages=1).evicted_pages == 1
        assert worker.cached(prompt(1)) == 0
        assert worker.violations() == []


def test_what_a_class_may_retain_is_spared_while_others_of_it_are_left(retaining):
    with protocol_worker(retaining.address) as worker:
        worker.cache(prompt(1), namespace=PATIENT, **SOON)
        worker.cache(prompt(1, 1000), namespace=PATIENT)
        assert worker.call("Evict", pages=1).evicted_pages == 1
        assert worker.cached(prompt(1), namespace=PATIENT) == PAGE_TOKENS
        patient = worker.stats().quota_classes[0]
        assert (patient.max_retention_seconds, patient.spared_leaves) == (600, 1)
        # Retention never pins pages.
        assert len(allocate(worker, USABLE).get().page_ids) == USABLE
        assert worker.violations() == []


def test_a_class_that_may_not_retain_does_not(retaining):
    with protocol_worker(retaining.address) as worker:
        worker.cache(prompt(1), retain_seconds=600)
        worker.cache(prompt(1, 1000))
        assert worker.call("Evict", pages=1).evicted_pages == 1
        assert worker.cached(prompt(1)) == 0
        assert [q.spared_leaves for q in worker.stats().quota_classes] == [0, 0]


def test_one_worker_that_retains_all_leaves_others_their_floors(start_pandod, tmp_path):
    config = tmp_path / "pando.yaml"
    config.write_text(
        RETAINING + "  - {class: other, extra_key: other, floor_pages: 20}\n"
    )
    other = {"extra_key": "other"}
    with protocol_worker(start_pandod(config=config).address) as worker:
        worker.cache(prompt(20), namespace=other)
        for start in range(1000, 201_000, 1000):
            worker.cache(prompt(4, start), namespace=PATIENT, **SOON)
        assert worker.cached(prompt(20), namespace=other) == 20 * PAGE_TOKENS
        # A prompt that comes after them has room at once.
        worker.cache(prompt(40, 500_000))
        assert worker.cached(prompt(40, 500_000)) == 40 * PAGE_TOKENS
        assert worker.violations() == []


def test_a_hint_that_the_server_does_not_know_is_refused(start_pandod):
    with protocol_worker(start_pandod().address) as worker:
        refused = ("INVALID_ARGUMENT", "INVALID_FIELD")
        assert worker.failure("Insert", expected_reuse=9) == refused
        assert worker.failure("Insert", retain_seconds=1, **ENDED) == refused
