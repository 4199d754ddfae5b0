"""Element types of KV without scales: its bytes say all, so that engines share it."""

from __future__ import annotations

from pando_kv.layout import DType

# By the names of torch.
PLAIN_DTYPES = {
    f"torch.{dtype.value}": dtype
    for dtype in (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
}
