"""Blocks that machines share in a folder or on a Redis server."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from blocks import BLOCKS_ONLY, assert_holds, keys, of, spec, store
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import Client, Operator, Shape
from pando_kv.blocks import MISSING, PENDING, are_places
from pandod_process import refused_start, serving
from redis_server import RedisServer


class Machine:
    """A pandod with block memory that shares its blocks."""

    def __init__(self, pandod, http: str) -> None:
        self.pandod = pandod
        self._http = http

    def page(self) -> MetricsPage:
        return MetricsPage(self._http)

    def figure(self, name: str, **labels: str) -> int:
        labels = {"tier": "remote"} | labels
        return int(self.page().sum(f"pando_block_tier_{name}", **labels))

    def refused(self, direction: str) -> int:
        name = "pando_block_tier_remote_refused"
        return int(self.page().sum(name, direction=direction))

    def stored(self) -> int:
        return self.figure("copied_blocks_total", direction="store")


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def start(stack, tmp_path) -> Callable[..., Machine]:
    """Returns a function that starts pandods, each as if on a machine of its own."""
    started = []

    def start(shared: str, **options: object) -> Machine:
        folder = tmp_path / f"machine-{len(started)}"
        folder.mkdir()
        http = free_address()
        given = BLOCKS_ONLY | {"http": http, "block_tier_shared": shared} | options
        machine = Machine(stack.enter_context(serving(folder, **given)), http)
        started.append(machine)
        return machine

    return start


@pytest.fixture
def folder(tmp_path) -> str:
    path = tmp_path / "shared"
    path.mkdir(mode=0o700)
    return f"file://{path}"


@pytest.fixture
def redis(stack, tmp_path) -> RedisServer:
    server = RedisServer(tmp_path / "server", "redis")
    stack.callback(server.kill)
    return server


@pytest.fixture(params=["folder", "redis"])
def shared(request) -> str:
    where = request.getfixturevalue(request.param)
    return where if isinstance(where, str) else where.url


@pytest.fixture(params=["lane", "grpc"])
def connect(request):
    return lambda machine: Client(machine.pandod.address, lane=request.param == "lane")


def loaded(client, asked):
    """Asks as an engine does in its steps, until no block is pending."""
    places = client.lookup_blocks(asked, load=True)
    while (places == PENDING).any():
        places = client.lookup_blocks(asked, load=True)
    return places


def test_a_machine_finds_what_another_has_stored(start, shared, connect):
    named = keys(8)
    one, other = start(shared), start(shared)
    with connect(one) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, named)
        eventually(lambda: one.stored() == len(named))
    with connect(other) as client:
        memory = client.attach_memory()
        kind, foreign = client.open_kinds([spec(), spec("b")])
        assert client.lookup_blocks([of(kind, named)]).tolist() == [MISSING] * 8
        assert_holds(memory, kind, named, loaded(client, [of(kind, named)]))
        assert loaded(client, [of(foreign, named)]).tolist() == [MISSING] * 8
    assert other.figure("copied_blocks_total", direction="load") == len(named)
    with Operator(other.pandod.address) as operator:
        assert operator.check_invariants() == []


def test_a_window_is_loaded_from_where_the_store_has_one(start, shared):
    one, other = start(shared), start(shared)
    with Client(one.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, keys(6))
        eventually(lambda: one.stored() == 6)
    with Client(other.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        asked = [of(kind, keys(20), shape=Shape.WINDOW, window=2)]
        places = loaded(client, asked)
        assert are_places(places[4:6]).all()
        assert_holds(memory, kind, keys(6)[4:], places[4:6])
    assert other.figure("copied_blocks_total", direction="load") == 2


def test_what_this_machine_has_on_disk_is_loaded_from_there(start, folder, tmp_path):
    disk = {"block_tier_disk": tmp_path / "disk", "block_tier_disk_bytes": "64MiB"}
    one, other = start(folder, **disk), start(folder)
    named = keys(8)
    with Client(one.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, named[:4])
        eventually(lambda: one.stored() == 4)
    with Client(other.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, named)
        eventually(lambda: other.stored() == 4)
    one.pandod.kill()
    one.pandod.start()
    eventually(lambda: one.page().sum("pando_block_tier_blocks") == 4)
    with Client(one.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        places = loaded(client, [of(kind, named, shape=Shape.PREFIX)])
        assert_holds(memory, kind, named, places)
    copied = "pando_block_tier_copied_blocks_total"
    by_tier = one.page().by("tier", copied, direction="load")
    assert by_tier == {"disk": 4, "remote": 4}


def test_a_reset_erases_what_is_shared(start, shared):
    one, other = start(shared), start(shared)
    named = keys(4)
    with Client(one.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, named)
        eventually(lambda: one.stored() == 4)
        (renewed,) = client.reset_kinds([kind.number])
        assert loaded(client, [of(renewed, named)]).tolist() == [MISSING] * 4
        later: list[bytes] = []

        def is_stored_again() -> bool:
            """True once the erasure is over; blocks published before are not stored."""
            later.extend(keys(1, prompt=10 + len(later)))
            store(client, memory, 1 + len(later), renewed, later[-1:])
            return one.stored() > 4

        eventually(is_stored_again)
    with Client(other.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        assert loaded(client, [of(kind, named)]).tolist() == [MISSING] * 4
        assert are_places(loaded(client, [of(kind, later)])).any()


def test_a_stopped_server_makes_misses_and_is_refused(start, redis):
    machine = start(redis.url)
    with Client(machine.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        redis.stall()
        for prompt in range(3):
            asked = [of(kind, keys(4, prompt))]
            assert loaded(client, asked).tolist() == [MISSING] * 4
        assert machine.refused("load") == 1
        store(client, memory, 1, kind, keys(4, 9))
        redis.go_on()
        reservation = iter(range(2, 10_000))

        def has_stored() -> bool:
            prompt = next(reservation)
            store(client, memory, prompt, kind, keys(1, prompt))
            return machine.stored() > 0

        eventually(has_stored)
    with Operator(machine.pandod.address) as operator:
        assert operator.check_invariants() == []


def test_blocks_are_signed_with_the_shared_key(start, folder, tmp_path):
    def key_file(name: str) -> object:
        path = tmp_path / name
        path.write_text(name * 32)
        path.chmod(0o600)
        return path

    one = start(folder, tier_shared_key_file=key_file("a"))
    same = start(folder, tier_shared_key_file=key_file("a"))
    other = start(folder, tier_shared_key_file=key_file("b"))
    named = keys(2)
    with Client(one.pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        store(client, memory, 1, kind, named)
        eventually(lambda: one.stored() == 2)
    for machine, has in ((same, True), (other, False)):
        with Client(machine.pandod.address) as client:
            client.attach_memory()
            (kind,) = client.open_kinds([spec()])
            places = loaded(client, [of(kind, named)])
            assert are_places(places).all() == has
            assert (places == MISSING).all() != has


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--block-tier-shared=file:///tmp", "--pool-pages=8"], "needs memory"),
        (["--block-tier-shared=tmp", "--memory=64MiB"], "block-tier-shared has an"),
        (
            ["--block-tier-shared=redis://a?ttl=1s", "--memory=64MiB"],
            "block-tier-shared has a ttl of '1s'",
        ),
    ],
    ids=["memory", "scheme", "ttl"],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, said):
    assert said in refused_start(tmp_path, *options)
