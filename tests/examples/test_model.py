"""The model's results, which are the same bits whether a prefix is cached or not."""

import numpy as np
import pytest
from model import ModelConfig, Tokens, Transformer
from paged_kv import Floats, PagedKv, PrivatePages

CONFIG = ModelConfig()
PAGE = CONFIG.page_tokens
POOL_PAGES = 64
LENGTH = 6 * PAGE + 5


@pytest.fixture(scope="module")
def model() -> Transformer:
    return Transformer(CONFIG)


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return (
        np.random.default_rng(1)
        .integers(0, CONFIG.vocabulary, LENGTH)
        .astype(np.uint32)
    )


def new_pages() -> PrivatePages:
    return PrivatePages(
        CONFIG.layers, POOL_PAGES, PAGE, CONFIG.kv_heads, CONFIG.head_size
    )


def scattered_kv(pages: PrivatePages, seed: int) -> PagedKv:
    order = np.random.default_rng(seed).permutation(POOL_PAGES).astype(np.uint32)
    return PagedKv(pages, CONFIG.layers, order[: -(-LENGTH // PAGE)])


def compute(
    model: Transformer, kv: PagedKv, tokens: Tokens, start: int, widths: list[int]
) -> Floats:
    """Returns the logits from `start` on; each step has at most its given width."""
    rows = []
    step = 0
    while start < len(tokens):
        end = min(
            start + widths[step % len(widths)], (start // PAGE + 1) * PAGE, len(tokens)
        )
        rows.append(model.step(tokens[start:end], start, kv))
        start, step = end, step + 1
    return np.concatenate(rows)


@pytest.fixture(scope="module")
def reference(model: Transformer, tokens: Tokens) -> Floats:
    return compute(model, scattered_kv(new_pages(), seed=0), tokens, 0, [PAGE])


def bits(rows: Floats) -> np.ndarray:
    return rows.view(np.uint32)


def test_page_numbers_do_not_change_a_bit(model, tokens, reference):
    rows = compute(model, scattered_kv(new_pages(), seed=7), tokens, 0, [PAGE])
    assert np.array_equal(bits(rows), bits(reference))


def test_decoding_row_by_row_gives_the_bits_of_a_prefill(model, tokens, reference):
    rows = compute(model, scattered_kv(new_pages(), seed=2), tokens, 0, [1])
    assert np.array_equal(bits(rows), bits(reference))


@pytest.mark.parametrize("seed", range(8))
def test_random_step_widths_do_not_change_a_bit(model, tokens, reference, seed):
    widths = np.random.default_rng(seed).integers(1, PAGE + 1, 50).tolist()
    rows = compute(model, scattered_kv(new_pages(), seed), tokens, 0, widths)
    assert np.array_equal(bits(rows), bits(reference))


@pytest.mark.parametrize("seed", range(8))
def test_a_prefix_that_another_instance_wrote_is_as_good_as_ones_own(
    model, tokens, reference, seed
):
    random = np.random.default_rng(seed)
    matched = int(random.integers(1, LENGTH // PAGE + 1)) * PAGE
    kv = scattered_kv(new_pages(), seed)
    widths = random.integers(1, PAGE + 1, 50).tolist()
    compute(Transformer(CONFIG), kv, tokens[:matched], 0, widths)
    rows = compute(model, kv, tokens, matched, [PAGE])
    assert np.array_equal(bits(rows), bits(reference[matched:]))


@pytest.mark.parametrize("stale", [np.nan, np.inf, 1e30])
def test_what_an_earlier_owner_left_in_a_page_is_never_read(
    model, tokens, reference, stale
):
    pages = new_pages()
    for layer in range(CONFIG.layers):
        pages.keys(layer)[:] = stale
        pages.values(layer)[:] = stale
    rows = compute(model, scattered_kv(pages, seed=3), tokens, 0, [3, 1, PAGE])
    assert np.array_equal(bits(rows), bits(reference))


def test_prefill_and_decode_write_the_same_kv_bits(model, tokens):
    prefilled, decoded = (
        scattered_kv(new_pages(), seed=4),
        scattered_kv(new_pages(), seed=5),
    )
    compute(model, prefilled, tokens, 0, [PAGE])
    compute(model, decoded, tokens, 0, [1])
    for layer in range(CONFIG.layers):
        for one, other in zip(
            prefilled.load(layer, LENGTH), decoded.load(layer, LENGTH), strict=True
        ):
            assert np.array_equal(bits(one), bits(other))


def test_a_token_far_back_changes_the_logits(model, tokens, reference):
    changed = tokens.copy()
    changed[0] ^= 1
    rows = compute(model, scattered_kv(new_pages(), seed=6), changed, 0, [PAGE])
    assert not np.array_equal(bits(rows[-1]), bits(reference[-1]))


def test_a_step_across_a_page_boundary_is_refused(model, tokens):
    with pytest.raises(ValueError, match="17 tokens at position 0 do not fit its page"):
        model.step(tokens[: PAGE + 1], 0, scattered_kv(new_pages(), seed=0))


def test_rows_computed_counts_no_padding(tokens):
    model = Transformer(CONFIG)
    compute(model, scattered_kv(new_pages(), seed=0), tokens[: PAGE + 3], 0, [PAGE])
    assert model.rows_computed == PAGE + 3
