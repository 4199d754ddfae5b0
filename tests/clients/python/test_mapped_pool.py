"""The pool's memory as numpy views, through a real memory socket and a memfd."""

import contextlib
import os
import socket
import struct
import threading
from dataclasses import replace

import numpy as np
import pytest
from pando_kv import (
    DType,
    KvLayout,
    LayoutOrder,
    MappedPool,
    PandoError,
    PoolDescription,
    Shard,
)

TOKEN = bytes(range(16))
PAGES, LAYERS, PAGE_TOKENS, HEADS, HEAD_SIZE = 5, 3, 4, 2, 8


def describe(dtype=DType.FLOAT32, kv_planes=2, order=LayoutOrder.LAYER_FIRST, shards=1):
    layout = KvLayout.make(
        capacity_pages=PAGES,
        layers=LAYERS,
        heads=HEADS,
        head_size=HEAD_SIZE,
        dtype=dtype,
        page_tokens=PAGE_TOKENS,
        kv_planes=kv_planes,
        order=order,
    )
    page_bytes = LAYERS * kv_planes * PAGE_TOKENS * layout.token_stride
    size = -(-PAGES * page_bytes // 4096) * 4096
    return PoolDescription(
        capacity_pages=PAGES,
        layout=layout,
        shards=tuple(Shard(index, "host", size) for index in range(shards)),
        model="",
        fingerprint=layout.fingerprint(""),
        page_bytes=page_bytes,
    )


def memfd(size):
    fd = os.memfd_create("pando-test")
    os.ftruncate(fd, size)
    return fd


class MemorySocket:
    """A memory socket that sends one peer `parts`, the first with all of `fds`."""

    def __init__(self, path, parts, fds=()):
        self.path = str(path)
        self.token = b""
        self._parts, self._fds = parts, fds
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        peer, _ = self._listener.accept()
        with peer:
            self.token = peer.recv(16, socket.MSG_WAITALL)
            first, *rest = self._parts
            if self._fds:
                socket.send_fds(peer, [first], self._fds)
            else:
                peer.sendall(first)
            for part in rest:
                peer.sendall(part)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._thread.join()
        self._listener.close()


def header(status=0, shards=0, magic=b"PNDO", version=1):
    return struct.pack("<4sIII", magic, version, status, shards)


def attach(path, description, parts, fds=()):
    with MemorySocket(path / "memory", parts, fds) as server:
        pool = MappedPool.attach(description, 7, server.path, TOKEN, timeout=10)
    assert server.token == TOKEN
    return pool


@pytest.fixture
def no_leaks():
    """Fails if the test leaves open descriptors of a pool's memory."""
    before = open_memory()
    yield
    assert open_memory() == before


def open_memory():
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:pando-test")
    return found


def map_pool(description):
    fds = [memfd(shard.size_bytes) for shard in description.shards]
    return MappedPool(
        description,
        7,
        [(fd, s.size_bytes) for fd, s in zip(fds, description.shards, strict=True)],
    )


def test_attach_maps_the_memory_of_every_shard(tmp_path, no_leaks):
    description = describe(shards=2)
    sizes = [shard.size_bytes for shard in description.shards]
    fds = [memfd(size) for size in sizes]
    message = header(shards=2) + struct.pack("<2Q", *sizes)

    with attach(tmp_path, description, [message], fds) as pool:
        pool.keys(0)[1, 2, 1, 3] = 1.5
        pool.values(2, shard=1)[...] = -1
        offset = PAGE_TOKENS * HEADS * HEAD_SIZE + (2 * HEADS + 1) * HEAD_SIZE + 3
        assert os.pread(fds[0], 4, 4 * offset) == struct.pack("<f", 1.5)
        assert np.frombuffer(os.pread(fds[1], sizes[1], 0), np.float32).sum() == (
            -PAGES * PAGE_TOKENS * HEADS * HEAD_SIZE
        )
    for fd in fds:
        os.close(fd)


def test_an_answer_in_pieces_is_put_together(tmp_path, no_leaks):
    description = describe()
    size = description.shards[0].size_bytes
    fd = memfd(size)
    message = header(shards=1) + struct.pack("<Q", size)
    parts = [message[i : i + 1] for i in range(len(message))]

    with attach(tmp_path, description, parts, [fd]) as pool:
        assert not pool.keys(0).any()
    os.close(fd)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([header(status=1)], "does not know the attach token"),
        ([header(status=2)], "could not export"),
        ([header(status=9)], "answered with status 9"),
        ([header(magic=b"HTTP")], "speaks b'HTTP' version 1"),
        ([header(version=2)], "version 2, not version 1"),
        ([header(shards=1000)], "announced 1000 descriptors"),
        ([header(shards=1) + struct.pack("<Q", 4096)], "0 descriptors and 1 sizes"),
        ([header()[:5]], "closed the connection after 5 of 16 bytes"),
        ([header(shards=2) + b"12345678"], "after 8 of 16 bytes"),
    ],
)
def test_a_bad_answer_is_an_error_and_leaks_nothing(tmp_path, no_leaks, parts, message):
    with pytest.raises(PandoError, match=message):
        attach(tmp_path, describe(), parts)


def test_descriptors_of_a_bad_answer_are_closed(tmp_path, no_leaks):
    fd = memfd(4096)
    message = header(shards=2) + struct.pack("<2Q", 4096, 4096)
    with pytest.raises(PandoError, match="1 descriptors and 2 sizes"):
        attach(tmp_path, describe(), [message], [fd])
    os.close(fd)


@pytest.mark.parametrize("sizes", [[], [4096], [8192, 8192]])
def test_shards_that_were_not_described_are_refused(tmp_path, no_leaks, sizes):
    description = describe(dtype=DType.FLOAT32)
    assert [shard.size_bytes for shard in description.shards] == [8192]
    fds = [memfd(size) for size in sizes]
    message = header(shards=len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    with pytest.raises(PandoError, match=r"bytes; the pool is described with \[8192\]"):
        attach(tmp_path, description, [message], fds)
    for fd in fds:
        os.close(fd)


@pytest.fixture
def crowd(tmp_path):
    """Yields a listening socket that accepts no connection and has a full queue."""
    path = str(tmp_path / "crowded")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                # A closed connection stays in the queue until it is accepted.
                with socket.socket(socket.AF_UNIX) as waiting:
                    waiting.setblocking(False)
                    waiting.connect(path)
        yield listener


def test_an_attach_waits_for_its_turn_in_a_crowd(crowd):
    errors = []

    def attach_in_vain():
        try:
            MappedPool.attach(describe(), 7, crowd.getsockname(), TOKEN, timeout=30)
        except PandoError as error:
            errors.append(str(error))

    thread = threading.Thread(target=attach_in_vain)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive(), errors
    while True:
        with crowd.accept()[0] as peer:
            if peer.recv(16, socket.MSG_WAITALL) == TOKEN:
                peer.sendall(header(status=1))
                break
    thread.join()
    assert "does not know the attach token" in errors[0]


def test_an_attach_gives_up_when_the_crowd_stays(crowd):
    with pytest.raises(PandoError, match="temporarily unavailable"):
        MappedPool.attach(describe(), 7, crowd.getsockname(), TOKEN, timeout=0.1)


def test_a_missing_memory_socket_is_an_error(tmp_path):
    with pytest.raises(PandoError, match="nobody"):
        MappedPool.attach(describe(), 7, str(tmp_path / "nobody"), TOKEN, timeout=1)


@pytest.mark.parametrize("order", LayoutOrder)
def test_every_element_has_its_own_place(order):
    with map_pool(describe(order=order)) as pool:
        count = 0
        for layer in range(LAYERS):
            for view in (pool.keys(layer), pool.values(layer)):
                assert view.shape == (PAGES, PAGE_TOKENS, HEADS, HEAD_SIZE)
                view[...] = np.arange(count, count + view.size).reshape(view.shape)
                count += view.size
        memory = np.sort(
            np.concatenate(
                [v(i).ravel() for i in range(LAYERS) for v in (pool.keys, pool.values)]
            )
        )
        assert memory.tolist() == list(range(count))
        del view


def test_a_page_is_contiguous_over_all_layers_when_pages_come_first():
    description = describe(order=LayoutOrder.PAGE_FIRST)
    with map_pool(description) as pool:
        for layer in range(LAYERS):
            pool.keys(layer)[2] = 1
            pool.values(layer)[2] = 1
        raw = pool._shards[0].array().view(np.float32)
        page = description.page_bytes // 4
        assert (raw[2 * page : 3 * page] == 1).all()
        assert raw.sum() == page
        del raw


def test_slots_and_pages_are_the_same_memory():
    with map_pool(describe()) as pool:
        slots = pool.key_slots(1)
        assert slots.shape == (PAGES * PAGE_TOKENS, HEADS, HEAD_SIZE)
        slots[3 * PAGE_TOKENS + 2] = 5
        pool.value_slots(1)[7] = 6
        assert (pool.keys(1)[3, 2] == 5).all()
        assert (pool.values(1)[1, 3] == 6).all()
        del slots


def test_slots_of_a_page_first_layout_are_refused():
    pool = map_pool(describe(order=LayoutOrder.PAGE_FIRST))
    with pool, pytest.raises(ValueError, match="page_first layout; index by page"):
        pool.key_slots(0)


def test_latent_layouts_have_one_plane():
    with map_pool(describe(kv_planes=1)) as pool:
        pool.latent(2)[4, 3, 1, 7] = 2
        assert pool.latent_slots(2)[-1, -1, -1] == 2
        for view in (pool.keys, pool.values, pool.key_slots, pool.value_slots):
            with pytest.raises(ValueError, match=r"kv_planes 1: use latent"):
                view(0)


def describe_opaque():
    layout = KvLayout.opaque(
        capacity_pages=PAGES, layers=LAYERS, page_bytes=LAYERS * 100, page_tokens=8
    )
    return replace(
        describe(),
        layout=layout,
        shards=(Shard(0, "host", -(-PAGES * LAYERS * 100 // 4096) * 4096),),
        page_bytes=LAYERS * 100,
    )


def test_opaque_pages_are_bytes_in_their_place():
    with map_pool(describe_opaque()) as pool:
        pool.opaque_pages(1)[2, 3] = 77
        at = pool.layout.layer_stride + 2 * pool.layout.page_stride + 3
        assert pool.memory()[at] == 77
        assert pool.memory().nonzero()[0].tolist() == [at]
        with pytest.raises(ValueError, match="opaque"):
            pool.keys(0)
        with pytest.raises(IndexError):
            pool.opaque_pages(LAYERS)


def test_pages_of_heads_are_not_opaque():
    with map_pool(describe()) as pool, pytest.raises(ValueError, match="float32"):
        pool.opaque_pages(0)


def test_the_memory_of_a_shard_is_all_its_bytes():
    with map_pool(describe(shards=2)) as pool:
        pool.keys(0, shard=1)[0, 0, 0, 0] = 1.0
        assert pool.numpy().memory(1).size == pool.description.shards[1].size_bytes
        assert pool.memory(1)[:4].tolist() == [0, 0, 128, 63]
        assert not pool.memory(0).any()
        with pytest.raises(IndexError, match="shard is 2"):
            pool.memory(2)


def test_latent_of_a_two_plane_layout_is_refused():
    pool = map_pool(describe())
    with pool, pytest.raises(ValueError, match=r"kv_planes 2: use keys"):
        pool.latent(0)


@pytest.mark.parametrize(
    ("dtype", "view"),
    [
        (DType.FLOAT32, np.float32),
        (DType.FLOAT16, np.float16),
        (DType.BFLOAT16, np.uint16),
        (DType.FLOAT8_E4M3, np.uint8),
        (DType.FLOAT8_E5M2, np.uint8),
    ],
)
def test_views_have_the_element_type_or_its_raw_bits(dtype, view):
    with map_pool(describe(dtype=dtype)) as pool:
        assert pool.keys(0).dtype == view


def test_layers_and_shards_out_of_range_are_refused():
    with map_pool(describe()) as pool:
        for layer in (-1, LAYERS):
            with pytest.raises(IndexError, match=f"layer is {layer}"):
                pool.keys(layer)
        with pytest.raises(IndexError, match="shard is 1"):
            pool.keys(0, shard=1)


def test_close_with_live_views_says_so_and_can_be_repeated(no_leaks):
    pool = map_pool(describe(shards=2))
    view = pool.keys(0)
    with pytest.raises(BufferError, match="views of the pool are still in use"):
        pool.close()
    del view
    pool.close()
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        pool.keys(0)
