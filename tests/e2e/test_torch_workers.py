"""Worker processes with torch tensors of the pool, on the host and on a GPU.

Skipped without torch; the half for a GPU also without a GPU.
"""

from collections.abc import Iterator

import pytest
from eventually import eventually
from pando_kv import Client
from pandod_process import POOL_PAGES, Pandod
from worker_process import WorkerProcess

torch = pytest.importorskip("torch")


@pytest.fixture(params=["host", "cuda"])
def pandod(start_pandod, request) -> Pandod:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    return start_pandod(pool_memory=request.param, dtype="bfloat16")


@pytest.fixture
def worker(pandod) -> Iterator[WorkerProcess]:
    with torch_worker(pandod) as process:
        process.do("attach")
        yield process


def torch_worker(pandod: Pandod) -> WorkerProcess:
    return WorkerProcess(pandod.address, program="torch_worker.py")


def free_pages(pandod: Pandod) -> int:
    with Client(pandod.address) as client:
        return client.stats().pages.free


def test_one_worker_reads_what_another_wrote(pandod, worker):
    assert worker.do("publish") == [1, 2, 3]
    with torch_worker(pandod) as other:
        assert other.do("attach", "match") is True


def test_a_worker_that_is_killed_while_its_kernels_write_gives_its_pages_back(
    pandod, worker
):
    worker.do("publish")
    with torch_worker(pandod) as other:
        assert other.do("attach", "write_on") == 10
        assert free_pages(pandod) == POOL_PAGES - 1 - 3 - 10
        other.kill()
    eventually(lambda: free_pages(pandod) == POOL_PAGES - 1 - 3)
    assert worker.do("match") is True


def test_workers_read_on_when_pandod_is_killed_and_get_a_clear_error(pandod, worker):
    worker.do("publish")
    with torch_worker(pandod) as other:
        other.do("attach", "match")
        pandod.kill()
        for process in (worker, other):
            assert process.do("read") is True
            assert process.do("match") == {"error": "UnavailableError"}
            assert process.do("read") is True


def test_attaching_again_is_at_the_same_address(worker):
    worker.do("publish")
    assert worker.do("attach_again") is True
    assert worker.do("match") is True


def test_attaching_a_thousand_times_leaves_no_device_memory_taken(pandod, worker):
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    before, after = worker.do("attach_often")
    assert after == before
