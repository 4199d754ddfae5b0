"""Element types of KV without scales. The bytes are complete by themselves, so
different engines can share them."""

from __future__ import annotations

from pando_kv.layout import DType

# Keyed by the names that torch gives.
PLAIN_DTYPES = {
    f"torch.{dtype.value}": dtype
    for dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
}
