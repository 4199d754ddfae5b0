"""Pages that a pando-mover copies keep their bytes."""

from contextlib import ExitStack, closing

import numpy as np
import pytest
from moved import DISK, HOST, Moved
from pandod_process import PAGE_TOKENS
from tiered import PAGES, PROMPT


def prompt(number: int) -> np.ndarray:
    return PROMPT + np.uint32(number * 1000)


def test_an_evicted_prefix_is_loaded_bit_by_bit(moved):
    computed = moved.store(PROMPT, seed=1)
    matched, loaded = moved.read()
    assert matched == PROMPT.size
    np.testing.assert_array_equal(loaded, computed)
    assert moved.copied("store") == moved.copied("load") == PAGES


def test_many_prompts_are_what_they_were(moved):
    computed = [moved.store(prompt(i), seed=i) for i in range(8)]
    for i, expected in enumerate(computed):
        matched, loaded = moved.read(prompt(i))
        assert matched == PROMPT.size
        np.testing.assert_array_equal(loaded, expected)
        moved.evict()


@pytest.mark.parametrize("order", ["layer_first", "page_first"])
@pytest.mark.parametrize("shards", [1, 3])
def test_all_shards_are_copied_in_each_layout(start_pandod, tmp_path, order, shards):
    moved = Moved(
        start_pandod, tmp_path, **HOST, layout_order=order, pool_shards=shards
    )
    with closing(moved.mover):
        moved.start_mover()
        computed = moved.store(PROMPT, seed=2)
        matched, loaded = moved.read()
        assert matched == PROMPT.size
        np.testing.assert_array_equal(loaded, computed)


def test_what_a_mover_stored_on_disk_a_pandod_loads_that_copies_itself(
    start_pandod, tmp_path
):
    from tiered import Tiered

    with ExitStack() as stack:
        moved = Moved(start_pandod, tmp_path, **DISK)
        stack.callback(moved.mover.close)
        moved.start_mover()
        computed = moved.store(PROMPT, seed=3)
        moved.pandod.stop()
        mapped = Tiered(start_pandod, tmp_path / "tier")
        matched, loaded = mapped.read()
    assert matched == PAGES * PAGE_TOKENS
    np.testing.assert_array_equal(loaded, computed)
