"""Parts of the linker by themselves, compared with plain models of them."""

import random

import numpy as np
import pytest
from pando_kv.blocks import MISSING, NOT_LOOKED_AT
from pando_kv.sglang.linker.budget import StepBudget
from pando_kv.sglang.linker.lookups import Wanted, boundaries
from pando_kv.sglang.linker.pages import PoolPages
from pando_kv.sglang.linker.store import portions


def boundaries_by_hand(there, wanted):
    pages = len(there[0])
    return [
        boundary
        for boundary in range(1, pages + 1)
        if all(
            all(has[max(0, boundary - (each.trailing or boundary)) : boundary])
            for has, each in zip(there, wanted, strict=True)
        )
    ]


@pytest.mark.parametrize("seed", range(50))
def test_boundaries_are_those_at_which_each_kind_has_what_it_needs(seed):
    choose = random.Random(seed)
    pages = choose.randrange(1, 40)
    wanted = [Wanted(0)] + [
        Wanted(kind, choose.randrange(1, 8))
        for kind in range(1, choose.randrange(1, 4))
    ]
    there = [[choose.random() < 0.9 for _ in range(pages)] for _ in wanted]
    places = np.array(
        [
            [
                n if has else choose.choice([MISSING, NOT_LOOKED_AT])
                for n, has in enumerate(row)
            ]
            for row in there
        ],
        np.uint32,
    )
    assert boundaries(places, wanted) == boundaries_by_hand(there, wanted), seed


@pytest.mark.parametrize("seed", range(20))
def test_portions_are_all_items_in_order_and_no_call_is_too_large(seed):
    choose = random.Random(seed)
    sizes = [choose.randrange(0, 50) for _ in range(choose.randrange(1, 6))]
    calls = portions(sizes, most=16)
    assert all(sum(end - first for _, first, end in call) <= 16 for call in calls)
    items = [
        (position, n)
        for call in calls
        for position, first, end in call
        for n in range(first, end)
    ]
    assert items == [(p, n) for p, size in enumerate(sizes) for n in range(size)]


def test_the_questions_of_a_step_take_no_longer_than_its_budget(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def question(seconds, answer):
        def ask():
            now[0] += seconds
            return answer

        return ask

    budget = StepBudget(0.02)
    answers = [budget.ask(question(0.008, n)) for n in range(5)]
    assert answers == [0, 1, 2, None, None]
    budget.begin_step()
    assert budget.ask(question(1.0, "late")) == "late"
    assert budget.ask(question(0.0, "not asked")) is None


class Pool:
    """A stand-in for a DevicePoolEntry with the keys and values of two layers."""

    page_size = 4

    def __init__(self, tensors):
        self.kv_buffer = tensors
        self.layer_mapping = {0: (0, 2), 3: (1, 3)}
        self.buffer_meta = [
            [
                (
                    tensor.data_ptr(),
                    tensor.stride(0) * tensor.element_size(),
                    tensor.nbytes // tensor.shape[0] * self.page_size,
                )
                for tensor in tensors
            ]
        ]


def test_the_fragments_of_all_layers_are_the_page():
    import torch

    tensors = [torch.zeros(32, 2, 8) for _ in range(4)]
    pages = PoolPages(Pool(tensors))
    assert pages.block_bytes == 4 * 4 * 2 * 8 * 4
    rows, blocks = np.array([4, 12], np.uint64), np.array([0, 8192], np.uint64)
    everything = pages.fragments(rows, blocks)
    by_layer = [pages.fragments(rows, blocks, layer) for layer in (0, 3)]
    assert pages.fragments(rows, blocks, 1) is None

    def triples(*fragments):
        return sorted(
            triple
            for each in fragments
            for triple in zip(
                each.device.tolist(),
                each.block.tolist(),
                each.sizes.tolist(),
                strict=True,
            )
        )

    assert triples(everything) == triples(*by_layer)
    first = everything.block[:4].tolist()
    assert first == [n * 4 * 2 * 8 * 4 for n in range(4)]
