"""pando-movers of a pool on two GPUs, on the stand-in for the CUDA driver.

No real GPU runs, so neither its copies nor their speed are tested. The tests see the
driver calls that the movers make, and the bytes that come back.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import cuda_stand_in
import pytest
from cuda_stand_in_worker import PAGES
from eventually import eventually
from metrics_page import MetricsPage, free_address
from mover_process import MoverProcess
from pandod_process import PAGE_TOKENS, Pandod
from worker_process import WorkerProcess

GPUS = ("0", "1")
CUDA_ERROR = 999


class OnGpus:
    """A pandod with tiers and a pool on two GPUs, its movers, and a worker."""

    def __init__(self, stack: ExitStack, folder: Path, **options: object) -> None:
        self.http = free_address()
        self.pandod = Pandod(
            folder,
            http=self.http,
            drain_timeout="0s",
            pool_memory="cuda",
            pool_devices=",".join(GPUS),
            tier_min_load_tokens=PAGE_TOKENS,
            **options,
        )
        stack.callback(self.pandod.close)
        self.pandod.start(**cuda_stand_in.environment())
        stack.callback(self.pandod.close_in_order)
        self.worker = stack.enter_context(
            WorkerProcess(
                self.pandod.address,
                program="cuda_stand_in_worker.py",
                **cuda_stand_in.environment(),
            )
        )
        self.worker.do("attach")
        # The movers meet pandod beside --socket, where it listens by default.
        self.movers = [
            MoverProcess(folder / "mover.sock", folder / f"mover-{gpu}.log", gpu)
            for gpu in GPUS
        ]
        for mover in self.movers:
            stack.callback(mover.close)

    def start_movers(self, **settings: object) -> None:
        for mover in self.movers:
            mover.start(**cuda_stand_in.environment(**settings))
        eventually(lambda: self.present() == len(GPUS))

    def present(self) -> int:
        return int(MetricsPage(self.http).sum("pando_tier_mover_present"))

    def figure(self, name: str, **labels: str) -> int:
        return int(MetricsPage(self.http).sum(f"pando_tier_{name}", **labels))

    def store(self) -> None:
        self.worker.do("publish")
        eventually(lambda: self.figure("pages") == PAGES)


@pytest.fixture(params=["host", "disk"])
def on_gpus(tmp_path, request) -> Iterator[OnGpus]:
    tiers = {
        "host": {"tier_host_bytes": "4MiB"},
        "disk": {
            "tier_disk": tmp_path / "tier",
            "tier_disk_bytes": "4MiB",
            "model": "a-model",
        },
    }
    with ExitStack() as stack:
        yield OnGpus(stack, tmp_path, **tiers[request.param])


# With a small `max_pitch` rows are too far apart for one 2D copy, so each is copied.
@pytest.mark.parametrize("settings", [{}, {"max_pitch": 1024}], ids=["2D", "rows"])
def test_an_evicted_prefix_comes_back_to_both_gpus(on_gpus, settings):
    on_gpus.start_movers(**settings)
    on_gpus.store()
    assert on_gpus.worker.do("evict") == PAGES
    assert on_gpus.worker.do("load")
    assert on_gpus.figure("copied_pages_total", direction="load") == PAGES


def test_one_mover_of_two_is_not_enough(on_gpus):
    on_gpus.start_movers()
    on_gpus.movers[1].kill()
    eventually(lambda: on_gpus.present() == 1)
    on_gpus.worker.do("publish")
    eventually(lambda: on_gpus.figure("dropped_pages_total") == PAGES)


@pytest.mark.parametrize(
    "function", ["cuMemHostRegister", "cuStreamCreate", "cuMemAddressReserve"]
)
def test_a_mover_that_cannot_map_or_pin_says_so_and_ends(on_gpus, function):
    mover = on_gpus.movers[0]
    mover.start(**cuda_stand_in.environment(fail=f"{function}={CUDA_ERROR}"))
    assert mover.wait() == 1
    assert function in mover.log()
    on_gpus.start_movers()


def test_a_copy_that_the_driver_refuses_is_counted_and_not_believed(on_gpus):
    on_gpus.start_movers(fail=f"cuMemcpy2DAsync={CUDA_ERROR}@1")
    on_gpus.worker.do("publish")
    eventually(lambda: on_gpus.figure("failures_total", step="write") > 0)
    assert on_gpus.figure("pages") < PAGES
    assert "cuMemcpy2DAsync" in on_gpus.movers[0].log()


def test_a_mover_whose_gpu_fails_ends_and_the_next_one_copies(on_gpus):
    on_gpus.start_movers(fail=f"cuEventQuery={CUDA_ERROR}@1")
    on_gpus.worker.do("publish")
    assert [mover.wait() for mover in on_gpus.movers] == [1, 1]
    eventually(lambda: on_gpus.figure("failures_total", step="write") > 0)
    on_gpus.worker.do("evict")
    on_gpus.start_movers()
    on_gpus.store()
    assert on_gpus.worker.do("evict") == PAGES
    assert on_gpus.worker.do("load")
