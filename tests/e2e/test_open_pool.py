"""A pool whose layout comes from the first engine that attaches."""

import asyncio
import os
import re
import shlex
import signal
import threading
from pathlib import Path

import pytest
from metrics_page import free_address, get
from pando_kv import (
    Client,
    DrainingError,
    KvLayout,
    LayoutMismatchError,
    PandoError,
    PrefixQuery,
)
from pando_kv._proto.pando.v1.types_pb2 import DTYPE_OPAQUE
from pando_kv._proto.pando.v1.types_pb2 import KvLayout as KvLayoutMessage
from pando_kv.aio import AsyncClient
from pandoctl import Pandoctl
from pandod_process import OPEN

MIB = 1 << 20
SIZE = {"pool_bytes": 8 * MIB}


def layout(**other: object) -> KvLayout:
    """Returns an engine's layout, which leaves the size of the pool open."""
    fields = {"layers": 3, "heads": 2, "head_size": 16, "dtype": "float16"}
    return KvLayout.make(capacity_pages=0, **(fields | {"page_tokens": 8} | other))


@pytest.fixture
def pandod(start_pandod):
    return start_pandod(**OPEN | SIZE)


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
        assert Path(f"/proc/{pid}/comm").read_text() == "pandod\n"
    status = ctl("status", "-o", "json").json()
    assert status["pool"]["layout"]["layers"] == 3
    assert status["pool"]["model"] == "m"
    assert f"{pages} pages of 8 tokens" in ctl("status").out


@pytest.fixture(params=["opened", "stated"])
def settled(request, start_pandod):
    """Returns a pandod whose pool has the layout of `layout()` and the model m."""
    fields = {"layers": 3, "heads": 2, "head_size": 16, "dtype": "float16"}
    stated = OPEN | SIZE | fields | {"page_tokens": 8, "model": "m"}
    server = start_pandod(**OPEN | SIZE if request.param == "opened" else stated)
    with Client(server.address) as first:
        first.attach_pool(expected_layout=layout(), model="m").close()
    return server


def test_a_later_engine_that_differs_is_told_all_fields_and_a_pandod_that_fits(
    settled, start_pandod, tmp_path
):
    wanted = layout(layers=4, heads=1, dtype="float32", page_tokens=16)
    with (
        Client(settled.address) as other,
        pytest.raises(LayoutMismatchError) as refused,
    ):
        other.attach_pool(expected_layout=wanted, model="n")
    fields, _, line = refused.value.message.partition("; a pool that fits: ")
    assert fields.split("; ") == [
        "layers is 4, the pool's is 3",
        "heads is 1, the pool's is 2",
        "dtype is 'float32', the pool's is 'float16'",
        "page_tokens is 16, the pool's is 8",
        "model is 'n', the pool's is 'm'",
    ]
    fits(line, wanted, "n", start_pandod)


def fits(line: str, wanted: KvLayout, model: str, start_pandod) -> None:
    """Checks that the command starts a pandod that the engine can attach."""
    program, *words = shlex.split(line)
    assert program == "pandod"
    names = [word.removeprefix("--").replace("-", "_") for word in words[::2]]
    options = OPEN | dict(zip(names, words[1::2], strict=True))
    other = start_pandod(folder="other", **options)
    with (
        Client(other.address) as client,
        client.attach_pool(expected_layout=wanted, model=model) as pool,
    ):
        size = pool.layout.piece_bytes * 2 * wanted.layers
        assert pool.description.capacity_pages == int(options["pool_bytes"]) // size


def test_of_two_first_engines_at_once_one_is_refused_with_all_fields(pandod):
    answers: dict[int, object] = {}
    both = threading.Barrier(2)

    def attach(layers: int) -> None:
        with Client(pandod.address) as client:
            wanted = layout(layers=layers, heads=layers)
            both.wait()
            try:
                with client.attach_pool(expected_layout=wanted, model="m") as pool:
                    answers[layers] = pool.layout.layers
            except LayoutMismatchError as error:
                answers[layers] = error.message

    threads = [threading.Thread(target=attach, args=(n,)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = 3 if answers[3] == 3 else 4
    loser = 7 - winner
    assert answers[winner] == winner
    assert answers[loser] == (
        f"layers is {loser}, the pool's is {winner}; "
        f"heads is {loser}, the pool's is {winner}; a pool that fits: pandod "
        f"--pool-bytes {8 * MIB // (64 * 8 * winner**2) * 64 * 8 * winner**2} "
        f"--layers {loser} --kv-planes 2 --heads {loser} --head-size 16 "
        "--dtype float16 --page-tokens 8 --model m"
    )


def test_what_is_stated_holds_and_leaves_the_pool_open(start_pandod):
    pandod = start_pandod(**OPEN | SIZE | {"page_tokens": 32, "model": "m"})
    with Client(pandod.address) as client:
        with pytest.raises(LayoutMismatchError) as refused:
            client.attach_pool(expected_layout=layout(), model="n")
        fields, _, line = refused.value.message.partition("; a pool that fits: ")
        assert "page-tokens is '8', the pool's is '32'" in fields
        assert "model is 'n', the pool's is 'm'" in fields
        assert client.describe_pool().is_open
        # An engine that names no model takes the stated one.
        with client.attach_pool(expected_layout=layout(page_tokens=32)) as pool:
            assert pool.layout.page_tokens == 32
            assert pool.description.model == "m"
    fits(line, layout(), "n", start_pandod)


NEED_PAGES = {
    "attach": lambda client: client.attach_pool(),
    "match": lambda client: client.match_prefix(range(64)),
    "matches": lambda client: client.match_prefixes([PrefixQuery(range(64))]),
    "insert": lambda client: client.insert(range(16), [1]),
    "lock": lambda client: client.lock(range(64)),
    "allocate": lambda client: client.allocate_pages(1),
    "free": lambda client: client.free_pages([1]),
    "evict": lambda client: client.evict(1),
    "explain": lambda client: client.explain(range(64)),
    "policy": lambda client: client.set_eviction_policy("lfu"),
}


@pytest.mark.parametrize("lane", [True, False], ids=["lane", "grpc"])
def test_calls_that_need_pages_are_refused_while_the_pool_is_open(pandod, lane):
    with Client(pandod.address, lane=lane) as client:
        assert client.transport == ("lane" if lane else "grpc")
        before = client.stats()
        for name, call in NEED_PAGES.items():
            with pytest.raises(PandoError, match="the pool is open") as refused:
                call(client)
            assert refused.value.reason == "POOL_OPEN", name
        batch = client.batch()
        match = batch.match_prefix(range(64))
        batch.send()
        with pytest.raises(PandoError, match="the pool is open"):
            match.result()
        assert client.stats().pages == before.pages
        assert client.stats().eviction_policy == before.eviction_policy
        too_large = layout(layers=1 << 20)
        with pytest.raises(PandoError, match="open pool cannot have this layout"):
            client.attach_pool(expected_layout=too_large)
        assert client.describe_pool().is_open
        with client.attach_pool(expected_layout=layout()):
            assert client.match_prefix(range(64)).matched_tokens == 0


IMPOSSIBLE = {
    "no layers": ({"layers": 0}, "layers is 0; must be from 1 to 4096"),
    "no dtype": ({"dtype": 99}, "layout.dtype is 99"),
    "no order": ({"order": 0}, "layout.order is 0"),
    "no bytes": ({"dtype": DTYPE_OPAQUE, "piece_bytes": 0}, "piece_bytes is 0"),
    # Two layers have 2^64 bytes, and three layers have 2^64 + 2.
    "2^64 bytes": (
        {"dtype": DTYPE_OPAQUE, "layers": 2, "piece_bytes": 1 << 63},
        "a page has 9223372036854775808 bytes in a layer; the limit is 4294967296",
    ),
    "2^64 + 2 bytes": (
        {"dtype": DTYPE_OPAQUE, "layers": 3, "piece_bytes": ((1 << 64) + 2) // 3},
        "a page has 6148914691236517206 bytes in a layer; the limit is 4294967296",
    ),
}


class Said:
    """A layout as its message, with values that no engine would send."""

    has_no_size = True

    def __init__(self, **fields: int) -> None:
        self._message = layout().to_message()
        for name, value in fields.items():
            setattr(self._message, name, value)

    def to_message(self) -> KvLayoutMessage:
        return self._message


@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_an_impossible_layout_is_refused_and_leaves_the_pool_open(pandod, why):
    fields, error = IMPOSSIBLE[why]
    with Client(pandod.address) as client:
        with pytest.raises(PandoError, match=re.escape(error)) as refused:
            client.attach_pool(expected_layout=Said(**fields))
        assert refused.value.reason == "INVALID_FIELD"
        assert client.describe_pool().is_open


@pytest.mark.parametrize(
    "model", ["--pool-bytes=1", "-", "bW9kZWw=", "[a,b]", '"', "two\nlines", " m "]
)
def test_a_model_is_taken_as_it_is_written(pandod, model):
    with (
        Client(pandod.address) as client,
        client.attach_pool(expected_layout=layout(), model=model) as pool,
    ):
        assert pool.description.model == model
        assert pool.description.shards[0].size_bytes == 8 * MIB


@pytest.mark.parametrize("model", ["a\0b", "m" * 4097, "m" * 200_000])
def test_a_model_that_no_option_holds_is_refused(pandod, model):
    with Client(pandod.address) as client:
        error = f"model has {len(model)} bytes; must have at most 4096"
        with pytest.raises(PandoError, match=error):
            client.attach_pool(expected_layout=layout(), model=model)
        assert client.describe_pool().is_open


def test_a_layout_with_which_pandod_could_not_begin_anew_is_refused(
    start_pandod, tmp_path
):
    config = tmp_path / "pandod.yaml"
    config.write_text("kv-planes: 2\n")
    pandod = start_pandod(**OPEN | SIZE | {"config": config})
    opaque = KvLayout.opaque(
        capacity_pages=0, layers=2, page_bytes=8192, page_tokens=16
    )
    with Client(pandod.address) as client:
        with pytest.raises(PandoError, match="page-bytes and kv-planes are both"):
            client.attach_pool(expected_layout=opaque)
        config.write_text("kv-planes: 2\nhigh-free-pages: 9000\nlow-free-pages: 1\n")
        with pytest.raises(PandoError, match="high-free-pages is 9000; must be less"):
            client.attach_pool(expected_layout=layout())
        config.write_text("event-history: many\n")
        with pytest.raises(PandoError, match="event-history is .many."):
            client.attach_pool(expected_layout=layout())
        assert client.describe_pool().is_open
        config.write_text("page-tokens: 32\n")
        with client.attach_pool(expected_layout=layout()) as pool:
            assert pool.layout.page_tokens == 8


def test_a_pandod_that_drains_takes_no_layout_and_goes_on_draining(pandod):
    with Client(pandod.address) as client:
        client.drain()
        with pytest.raises(DrainingError):
            client.attach_pool(expected_layout=layout())
        assert client.describe_pool().is_open


def test_the_signal_that_pandod_sends_itself_does_nothing_when_others_send_it(pandod):
    os.kill(pandod.pid, signal.SIGUSR1)
    pandod.stop()
    [drain] = [event for event in pandod.events() if event["msg"] == "draining"]
    assert drain["signal"] == "SIGTERM"


def test_an_open_pool_may_be_smaller_than_two_pages_of_the_defaults(start_pandod):
    pandod = start_pandod(**OPEN | {"pool_bytes": MIB, "page_tokens": 8})
    with (
        Client(pandod.address) as client,
        client.attach_pool(expected_layout=layout()) as pool,
    ):
        assert pool.description.capacity_pages == MIB // 3072


def test_a_tier_of_an_open_pool_comes_with_the_layout(start_pandod):
    """A page of the default layout would not fit into this tier."""
    pandod = start_pandod(**OPEN | SIZE, tier_host_bytes="1MiB")
    with Client(pandod.address) as client:
        client.attach_pool(expected_layout=layout())
        (tier,) = client.stats().tiers
        assert tier.capacity_pages == MIB // client.pool.page_bytes


def test_an_open_pandod_answers_all_who_only_look(start_pandod):
    http = free_address()
    pandod = start_pandod(**OPEN | SIZE | {"http": http})
    for _ in range(2):
        assert get(http, "/healthz") == (200, "ok\n")
        assert get(http, "/metrics")[0] == 200
        assert get(http, "/console/")[0] == 200
        with Client(pandod.address) as client:
            assert client.check_invariants() == []
            assert client.dump_tree().nodes == []
            client.attach_pool(expected_layout=layout()).close()
    assert 'layout="open"' not in get(http, "/metrics")[1]


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
