"""The differences between a worker's layout and the pool's, and the pandod command
whose pool would fit."""

from __future__ import annotations

import enum
import shlex

from pando_kv.layout import DType, KvLayout, LayoutOrder, PoolDescription

# Fields that follow from the other fields and the number of pages.
_PLACES = (
    "layer_stride",
    "page_stride",
    "kv_stride",
    "token_stride",
    "head_stride",
    "piece_bytes",
)


def difference(layout: KvLayout, model: str, pool: PoolDescription) -> str:
    """Returns a text with all fields that differ, the worker's and the pool's values,
    and the pandod command that would fit. Returns an empty string if no field differs.
    """
    stated = vars(layout) | {"model": model}
    of_pool = vars(pool.layout) | {"model": pool.model}
    differing = [field for field in stated if stated[field] != of_pool[field]]
    if not differing:
        return ""
    told = [field for field in differing if field not in _PLACES] or differing
    fields = [
        f"{field} is {_plain(stated[field])!r}, "
        f"the pool's is {_plain(of_pool[field])!r}"
        for field in told
    ]
    return f"{'; '.join(fields)}; a pool that fits: {_pandod(layout, model, pool)}"


def _pandod(layout: KvLayout, model: str, pool: PoolDescription) -> str:
    """Returns the command of a pandod with the wanted layout. Its pool is as large as
    the present one; if there is none, the size is left open."""
    size = str(pool.capacity_pages * pool.page_bytes)
    options = {"pool-bytes": "SIZE" if pool.is_absent else size}
    if any(shard.device != "host" for shard in pool.shards):
        options["pool-memory"] = "cuda"
    if len(pool.shards) > 1:
        options["pool-shards"] = str(len(pool.shards))
    options["layers"] = str(layout.layers)
    if layout.dtype is DType.OPAQUE:
        options["page-bytes"] = str(layout.layers * layout.piece_bytes)
    else:
        options["kv-planes"] = str(layout.kv_planes)
        options["heads"] = str(layout.heads)
        options["head-size"] = str(layout.head_size)
        options["dtype"] = layout.dtype.value
    options["page-tokens"] = str(layout.page_tokens)
    if layout.order is not LayoutOrder.LAYER_FIRST:
        options["layout-order"] = layout.order.value
    if layout.page_format:
        options["page-format"] = layout.page_format
    if model:
        options["model"] = model
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return shlex.join(["pandod", *words])


def _plain(value: object) -> object:
    return value.value if isinstance(value, enum.Enum) else value
