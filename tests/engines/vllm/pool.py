"""The options of a pandod for vLLM's test model."""

from engines.models import LAYERS

BLOCK_TOKENS = 32
# The bytes of a block in one layer: K and V of its tokens, for 2 heads of 32 float32.
BLOCK_BYTES = 2 * BLOCK_TOKENS * 2 * 32 * 4
PAGE_FORMAT = "of the tests"

MODEL = "tiny"

POOL = {
    "model": MODEL,
    "page_tokens": BLOCK_TOKENS,
    "layers": LAYERS,
    "page_bytes": LAYERS * BLOCK_BYTES,
    "page_format": PAGE_FORMAT,
    # None removes the description by heads that the Pandod fixture has by default.
    "heads": None,
    "head_size": None,
    "dtype": None,
}
