"""A pando-mover of a pool on a GPU; skipped without torch or without a GPU."""

from contextlib import closing

import pytest
from eventually import eventually
from metrics_page import MetricsPage, free_address
from mover_process import MoverProcess
from pandod_process import PAGE_TOKENS
from worker_process import WorkerProcess

torch = pytest.importorskip("torch")

TIERS = {
    "host": {"tier_host_bytes": "64MiB"},
    "disk": {"tier_disk_bytes": "64MiB", "model": "a-model"},
}


@pytest.mark.parametrize("kind", TIERS)
def test_an_evicted_prefix_comes_back_to_the_gpu(start_pandod, tmp_path, kind):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    http = free_address()
    folder = {"tier_disk": tmp_path / "tier"} if kind == "disk" else {}
    pandod = start_pandod(
        http=http,
        pool_memory="cuda",
        dtype="bfloat16",
        tier_min_load_tokens=PAGE_TOKENS,
        **folder,
        **TIERS[kind],
    )
    mover = MoverProcess(tmp_path / "mover.sock", tmp_path / "mover.log", "0")

    def figure(name: str, **labels: str) -> int:
        return int(MetricsPage(http).sum(f"pando_tier_{name}", **labels))

    with (
        closing(mover),
        WorkerProcess(pandod.address, program="torch_worker.py") as worker,
    ):
        worker.do("attach")
        mover.start_and_copy()
        pages = len(worker.do("publish"))
        eventually(lambda: figure("pages") == pages)
        assert worker.do("evict") == pages
        assert worker.do("load") is True
        assert figure("copied_pages_total", direction="load") == pages
