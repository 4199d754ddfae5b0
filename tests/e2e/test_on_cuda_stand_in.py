"""CUDA pools on a stand-in for the driver; no real GPU is used and no kernel runs.

The tests see what pandod and the clients ask of the driver when they start, attach and
die, and what each failing call leads to. The stand-in is tests/support/cuda_stand_in.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import cuda_stand_in
import pytest
from eventually import eventually
from pando_kv import Client
from pandod_process import POOL_PAGES, Pandod, refused_start
from worker_process import WorkerProcess

SMALL = "--pool-pages=64"
DEVICES = (
    "57a2d1f0-0000-4000-8000-000000000000",
    "57a2d1f0-0000-4000-8000-000000000001",
)
MIB = 1 << 20

StartPandod = Callable[..., Pandod]


@pytest.fixture
def start_pandod(tmp_path: Path) -> Iterator[StartPandod]:
    """Yields a function that starts a pandod with a pool on both GPUs."""
    with ExitStack() as stack:

        def start(settings: dict[str, object] | None = None, **options) -> Pandod:
            server = Pandod(
                tmp_path,
                drain_timeout="0s",
                pool_memory="cuda",
                **({"pool_devices": "0,1"} | options),
            )
            stack.callback(server.close)
            server.start(**cuda_stand_in.environment(**(settings or {})))
            stack.callback(server.close_in_order)
            return server

        yield start


@pytest.fixture
def pandod(start_pandod: StartPandod) -> Pandod:
    return start_pandod()


def start_worker(pandod: Pandod, **settings: object) -> WorkerProcess:
    return WorkerProcess(
        pandod.address,
        program="cuda_stand_in_worker.py",
        **cuda_stand_in.environment(**settings),
    )


@pytest.fixture
def worker(pandod: Pandod) -> Iterator[WorkerProcess]:
    with start_worker(pandod) as process:
        process.do("attach")
        yield process


def held_memory(pandod: Pandod) -> list[str]:
    """Returns the files of the stand-in's memory that pandod has open."""
    links = []
    for descriptor in Path(f"/proc/{pandod.pid}/fd").iterdir():
        # pandod may close other descriptors at any time.
        with suppress(FileNotFoundError):
            links.append(str(descriptor.readlink()))
    return [link for link in links if "cuda_stand_in_device" in link]


def free_pages(pandod: Pandod) -> int:
    with Client(pandod.address) as client:
        return client.stats().pages.free


# Attaching.


def test_one_worker_reads_what_another_wrote_in_every_shard(pandod, worker):
    assert worker.do("publish") == [1, 2, 3]
    with start_worker(pandod) as other:
        assert other.do("attach", "match")


def test_the_pool_is_described_with_its_devices(pandod):
    with Client(pandod.address) as client:
        shards = client.pool.shards
    assert [shard.device for shard in shards] == [f"cuda:{uuid}" for uuid in DEVICES]
    assert [shard.size_bytes % (2 * MIB) for shard in shards] == [0, 0]


# An H100's driver (580) did not give the address of a range that had been freed.
@pytest.mark.parametrize("ignores_addresses", [0, 1])
def test_attaching_again_is_at_the_same_addresses(pandod, ignores_addresses):
    with start_worker(pandod, ignores_addresses=ignores_addresses) as worker:
        worker.do("attach", "publish")
        assert worker.do("attach_again") is True
        assert worker.do("match") is True


def test_an_address_that_is_not_to_be_had_is_refused_and_may_be_forgone(pandod):
    with start_worker(pandod, ignores_addresses=1) as worker:
        worker.do("attach")
        refused = worker.do("attach_elsewhere")
        assert re.search(
            "^ADDRESS_TAKEN: address 0x[0-9a-f]+ of the GPU 0 is not to be had",
            refused["message"],
        )
        assert worker.do("held") == [0, 0]
        assert worker.do("attach", "publish") == [1, 2, 3]


# Ranks.


def test_eight_ranks_have_a_context_each_and_share_pages(start_pandod):
    devices = range(8)
    pandod = start_pandod({"devices": 8}, pool_devices=",".join(map(str, devices)))
    with ExitStack() as stack:
        ranks = [stack.enter_context(start_worker(pandod, devices=8)) for _ in devices]
        contexts = [rank.do(f"attach_shard {i}") for i, rank in enumerate(ranks)]
        assert contexts == [1] * 8
        assert [rank.do("held") for rank in ranks] == [[1, 1]] * 8
        pages = ranks[0].do("publish")
        for rank in ranks[1:]:
            assert rank.do("write 1,2,3") is None
        assert pages == [1, 2, 3]
        assert all(rank.do("match") for rank in ranks)


def test_a_rank_that_sees_its_own_gpu_alone_maps_its_shard(pandod):
    with start_worker(pandod, visible="1") as rank:
        assert rank.do("attach_shard 1") == 1
        assert rank.do("publish") == [1, 2, 3]
        with start_worker(pandod) as other:
            assert other.do("attach_shard 1", "match")


def test_a_shard_that_is_not_mapped_is_named(pandod):
    with start_worker(pandod) as rank:
        rank.do("attach_shard 1")
        assert rank.do("look_at 0") == "shard is 0; mapped are [1]"


def test_each_gpu_reaches_each_shard_that_its_worker_maps(worker):
    assert worker.do("writers") == [[True, True], [True, True]]


def test_where_gpus_are_no_peers_each_reaches_its_own_shard(pandod):
    with start_worker(pandod, peers=0) as worker:
        worker.do("attach")
        assert worker.do("writers") == [[True, False], [False, True]]


def test_a_hundred_mappings_leave_nothing_behind(worker):
    assert worker.do("attach_often")


def test_pandod_holds_the_memory_and_does_not_map_it(pandod, worker):
    assert len(held_memory(pandod)) == 2
    maps = Path(f"/proc/{pandod.pid}/maps").read_text()
    assert "cuda_stand_in_device" not in maps


@pytest.mark.parametrize("rdma", [1, 0])
def test_network_cards_may_reach_the_pool_where_the_gpus_let_them(start_pandod, rdma):
    pandod = start_pandod({"rdma": rdma})
    assert ["_rdma" in pool for pool in held_memory(pandod)] == [bool(rdma)] * 2


def test_what_was_in_the_gpus_memory_before_is_overwritten_with_zeros(worker):
    assert worker.do("zeros")


# Deaths.


def test_a_worker_that_is_killed_gives_its_pages_back(pandod, worker):
    worker.do("publish")
    with start_worker(pandod) as other:
        assert other.do("attach", "reserve") == 10
        assert free_pages(pandod) == POOL_PAGES - 1 - 3 - 10
        other.kill()
    eventually(lambda: free_pages(pandod) == POOL_PAGES - 1 - 3)
    assert worker.do("match")


def test_workers_read_on_when_pandod_is_killed_and_attach_to_the_next(pandod, worker):
    worker.do("publish")
    with start_worker(pandod) as other:
        other.do("attach", "match")
        pandod.kill()
        for process in (worker, other):
            assert process.do("read")
            assert process.do("match")["error"] == "UnavailableError"
            assert process.do("read")
        pandod.start(**cuda_stand_in.environment())
        eventually(lambda: worker.do("attach_again") is True)
        assert worker.do("publish") == [1, 2, 3]


# Failures at the start.


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"fail": "cuInit=999"}, [SMALL], "cannot be used: cuInit: error 999"),
        ({"devices": 0}, [SMALL], "no CUDA-capable device is detected"),
        ({"missing": "cuMemMap"}, [SMALL], "has no cuMemMap; a newer one is needed"),
        ({"shares": 0}, [SMALL], "cannot share memory by file descriptors"),
        (
            {"fail": "cuMemCreate=2"},
            [SMALL],
            rf"GPU 0 \({DEVICES[0]}\): cuMemCreate of 2097152 bytes: out of memory",
        ),
        (
            {"fail": "cuMemCreate=2@2"},
            [SMALL, "--pool-devices=0,1"],
            rf"GPU 1 \({DEVICES[1]}\): cuMemCreate of 2097152 bytes: out of memory",
        ),
        (
            {"device_bytes": MIB},
            ["--pool-bytes=2MiB"],
            "a shard needs [0-9]+ bytes; GPU 0 .* has 1048576 bytes of memory",
        ),
        (
            {},
            [SMALL, "--pool-devices=99"],
            f"no GPU is '99'; there are: 0 GPU-{DEVICES[0]}, 1 GPU-{DEVICES[1]}",
        ),
        (
            {"fail": "cuMemsetD8=800"},
            [SMALL],
            "cuMemsetD8: operation not permitted",
        ),
        (
            {"fail": "cuMemGetInfo=800"},
            ["--pool-fraction=0.5"],
            "cuMemGetInfo: operation not permitted",
        ),
        # The check needs kernels, and its runtime needs more of a driver than the
        # stand-in has.
        ({}, [SMALL, "--verify-pages=1"], "cudaSetDevice"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(
    tmp_path, settings, options, message
):
    shape = ["--layers=2", "--heads=2", "--head-size=8", "--pool-memory=cuda"]
    said = refused_start(
        tmp_path, *shape, *options, **cuda_stand_in.environment(**settings)
    )
    assert re.search(f"cannot start.*{message}", said), said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--pool-bytes=2GiB", "--pool-devices=0"],
            f"a shard needs {2 << 30} bytes; GPU 0 .* has {1 << 30} bytes of memory",
        ),
        (["--pool-bytes=4MiB", "--pool-devices=99"], "no GPU is '99'"),
    ],
)
def test_an_open_pool_whose_gpu_is_absent_or_too_small_does_not_start(
    tmp_path, options, message
):
    said = refused_start(
        tmp_path,
        "--pool-memory=cuda",
        *options,
        **cuda_stand_in.environment(device_bytes=MIB << 10),
    )
    assert re.search(f"cannot start.*{message}", said), said
    assert list(tmp_path.iterdir()) == []


def test_a_driver_that_is_too_old_is_named_with_both_versions(tmp_path):
    said = refused_start(
        tmp_path, "--pool-memory=cuda", "--pool-pages=64", **cuda_stand_in.too_old()
    )
    assert "it supports CUDA 11.4, at least 12.0 is needed" in said


def test_a_fraction_is_of_the_least_free_device(start_pandod):
    pandod = start_pandod(
        {"device_bytes": 64 * MIB}, pool_pages=None, pool_fraction=0.5
    )
    with Client(pandod.address) as client:
        pool = client.pool
    assert [shard.size_bytes for shard in pool.shards] == [32 * MIB] * 2


# Failures after the start.


def test_an_export_that_fails_is_an_error_of_that_attach_alone(start_pandod):
    pandod = start_pandod({"fail": "cuMemExportToShareableHandle=304@2"})
    with start_worker(pandod) as worker:
        refused = worker.do("attach")
        assert "could not export the memory" in refused["message"]
        assert worker.do("held") == [0, 0]
        assert worker.do("attach") is None
        assert worker.do("publish")
    logged = [event for event in pandod.events() if event["level"] == "error"]
    assert [(event["shard"], event["device"]) for event in logged] == [
        (1, f"cuda:{DEVICES[1]}")
    ]
    assert "cuMemExportToShareableHandle: OS call failed" in logged[0]["reason"]


@pytest.mark.parametrize(
    "function",
    [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGetUuid",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent",
        "cuMemImportFromShareableHandle",
        "cuMemAddressReserve",
        "cuMemMap",
        "cuDeviceCanAccessPeer",
        "cuMemSetAccess",
    ],
)
def test_a_mapping_that_fails_names_the_call_and_leaves_nothing(pandod, function):
    with start_worker(pandod, fail=f"{function}=800@1") as worker:
        refused = worker.do("attach")
        assert refused["error"] == "PandoError"
        assert re.search(
            rf"CUDA: {function}\w*: operation not permitted", refused["message"]
        )
        assert worker.do("held") == [0, 0]
        assert worker.do("attach") is None
        assert worker.do("publish") == [1, 2, 3]


def test_a_worker_that_does_not_see_the_pools_gpu_is_told_so(pandod):
    with start_worker(pandod, devices=1) as worker:
        message = worker.do("attach")["message"]
        assert f"the pool is on the GPU {DEVICES[1]}, which is none of the 1" in message
        assert worker.do("held") == [0, 0]


def test_a_worker_whose_driver_is_too_old_is_told_so(pandod):
    old = WorkerProcess(
        pandod.address, program="cuda_stand_in_worker.py", **cuda_stand_in.too_old()
    )
    with old as worker:
        assert "a newer one is needed" in worker.do("attach")["message"]
