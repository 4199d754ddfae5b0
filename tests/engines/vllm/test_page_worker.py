"""Pages in a worker of vLLM, without a model."""

from types import SimpleNamespace

from engines.models import LAYERS
from engines.vllm.conftest import serve_pool
from engines.vllm.pool import BLOCK_BYTES, MODEL, PAGE_FORMAT
from pando_kv import Client
from pando_kv.vllm.pages.stated_pages import StatedPages
from pando_kv.vllm.pages.worker import PageWorker
from vllm.v1.kv_cache_interface import KVCacheTensor

PAGES = 16


def test_a_rank_maps_its_own_shard(tmp_path):
    """Mapping a shard needs a context on its GPU, which other ranks may not see."""
    tensor = KVCacheTensor(
        size=LAYERS * PAGES * BLOCK_BYTES,
        layers=[f"layer.{n}" for n in range(LAYERS)],
        layer_stride=PAGES * BLOCK_BYTES,
        block_stride=BLOCK_BYTES,
    )
    caches = SimpleNamespace(kv_cache_tensors=[tensor])
    server = serve_pool(tmp_path, PAGES, pool_shards=2)
    with Client(server.address) as client:
        stated = StatedPages(MODEL, "", PAGE_FORMAT)
        worker = PageWorker(client, 1, stated, caches, None)
        worker.memory_context()
        assert worker._pool.mapped == (1,)
    server.close()
