"""A pool whose layout the first engine that attaches says."""

import asyncio
import threading

import pytest
from pando_kv import Client, KvLayout, LayoutMismatchError, PandoError
from pando_kv.aio import AsyncClient
from pandoctl import Pandoctl

MIB = 1 << 20
OPEN = {"pool_pages": None, "page_tokens": None, "pool_bytes": 8 * MIB} | dict.fromkeys(
    ("layers", "heads", "head_size", "dtype")
)


def layout(**other: object) -> KvLayout:
    """The engine's, which knows nothing of the size of the pool."""
    fields = {"layers": 3, "heads": 2, "head_size": 16, "dtype": "float16"}
    return KvLayout.make(capacity_pages=0, **(fields | {"page_tokens": 8} | other))


@pytest.fixture
def pandod(start_pandod):
    return start_pandod(**OPEN)


def test_the_first_engine_says_the_layout_and_an_equal_one_shares_the_pool(pandod):
    ctl = Pandoctl(pandod.address)
    assert "open, waits for the first engine" in ctl("status").out
    with Client(pandod.address) as first, Client(pandod.address) as second:
        assert first.pool.is_open
        pid = pandod.pid
        with first.attach_pool(expected_layout=layout(), model="m") as pool:
            pages = 8 * MIB // (3 * 2 * 2 * 16 * 2 * 8)
            assert pool.description.capacity_pages == pages
            assert pool.layout == layout().in_pool_of(pages)
            assert not first.pool.is_open
            [page] = first.allocate_pages(1)
            pool.keys(0)[page] = 7
            with second.attach_pool(expected_layout=layout(), model="m") as seen:
                assert (seen.keys(0)[page] == 7).all()
        assert pandod.pid == pid
    status = ctl("status", "-o", "json").json()
    assert status["pool"]["layout"]["layers"] == 3
    assert status["pool"]["model"] == "m"
    assert f"{pages} pages of 8 tokens" in ctl("status").out


def test_a_later_engine_that_differs_is_refused_with_all_fields(pandod):
    with Client(pandod.address) as first, Client(pandod.address) as other:
        first.attach_pool(expected_layout=layout(), model="m").close()
        wanted = layout(layers=4, heads=1)
        with pytest.raises(LayoutMismatchError) as refused:
            other.attach_pool(expected_layout=wanted, model="n")
    said = str(refused.value)
    for field in ("layers is 4, the pool's is 3", "heads is 1", "model is 'n'"):
        assert field in said
    assert "pandod --pool-bytes" in said


def test_two_first_engines_at_once_get_one_layout(pandod):
    answers: dict[int, object] = {}
    both = threading.Barrier(2)

    def attach(layers: int) -> None:
        with Client(pandod.address) as client:
            both.wait()
            try:
                with client.attach_pool(expected_layout=layout(layers=layers)) as pool:
                    answers[layers] = pool.layout.layers
            except LayoutMismatchError:
                answers[layers] = "refused"

    threads = [threading.Thread(target=attach, args=(n,)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers in ({3: 3, 4: "refused"}, {3: "refused", 4: 4})


def test_what_is_stated_holds_and_leaves_the_pool_open(start_pandod):
    pandod = start_pandod(**OPEN | {"page_tokens": 32, "model": "m"})
    with Client(pandod.address) as client:
        with pytest.raises(LayoutMismatchError) as refused:
            client.attach_pool(expected_layout=layout(), model="n")
        assert "page-tokens is '8', the pool's is '32'" in str(refused.value)
        assert "model is 'n', the pool's is 'm'" in str(refused.value)
        assert client.describe_pool().is_open
        fitting = layout(page_tokens=32)
        with client.attach_pool(expected_layout=fitting, model="m") as pool:
            assert pool.layout.page_tokens == 32


def test_calls_that_need_a_layout_say_that_the_pool_is_open(pandod):
    with Client(pandod.address) as client:
        for call in (client.attach_pool, lambda: client.allocate_pages(1)):
            with pytest.raises(PandoError, match="the pool is open: it has no pages"):
                call()
        too_large = layout(layers=1 << 20)
        with pytest.raises(PandoError, match="open pool cannot have this layout"):
            client.attach_pool(expected_layout=too_large)
        assert client.describe_pool().is_open


def test_the_asynchronous_client_says_the_layout_too(pandod):
    async def attach() -> int:
        async with AsyncClient(pandod.address) as client:
            pool = await client.attach_pool(expected_layout=layout(), model="m")
            with pool:
                return pool.layout.layers

    assert asyncio.run(attach()) == 3


def test_opaque_pages_are_taken_as_they_are(pandod):
    opaque = KvLayout.opaque(
        capacity_pages=0, layers=2, page_bytes=8192, page_tokens=16, page_format="x y"
    )
    with (
        Client(pandod.address) as client,
        client.attach_pool(expected_layout=opaque) as pool,
    ):
        assert pool.layout == opaque.in_pool_of(1024)
