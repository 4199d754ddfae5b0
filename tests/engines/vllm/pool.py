"""The options of a pandod for the test model of vLLM."""

from engines.models import LAYERS

BLOCK_TOKENS = 32
# The bytes of a block in a layer: K and V of its tokens, 2 heads of 32 float32.
BLOCK_BYTES = 2 * BLOCK_TOKENS * 2 * 32 * 4
PAGE_FORMAT = "of the tests"

MODEL = "tiny"

POOL = {
    "model": MODEL,
    "page_tokens": BLOCK_TOKENS,
    "layers": LAYERS,
    "page_bytes": LAYERS * BLOCK_BYTES,
    "page_format": PAGE_FORMAT,
    # Pandod's fixture describes pages by heads.
    "heads": None,
    "head_size": None,
    "dtype": None,
}
