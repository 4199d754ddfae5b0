"""Limits of one session in the block memory, and calls in a wrong order."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from blocks import BLOCKS_ONLY, KEY_BYTES, MIB, keys, of, spec, store
from credentials import calls, folder_of_tokens, guarded, token_of
from eventually import eventually
from pando_kv import (
    AccessDeniedError,
    BlockKeys,
    Client,
    InvalidRequestError,
    KindSpec,
    LayoutMismatchError,
    Namespace,
    PandoError,
    SessionLimitError,
    Shape,
)
from pando_kv._proto.pando.v1 import blocks_pb2
from pando_kv.blocks import are_places
from pandod_process import refused_start
from raw_calls import RawCalls

MOST_KEYS = 16_384
SERVICE = "pando.v1.Blocks"


@pytest.fixture
def client(start_pandod) -> Iterator[Client]:
    with Client(start_pandod(**BLOCKS_ONLY).address) as client:
        yield client


def refusal(call) -> PandoError:
    with pytest.raises(PandoError) as refused:
        call()
    return refused.value


def test_a_locked_block_too_many_is_refused_and_changes_nothing(start_pandod):
    pandod = start_pandod(max_block_locks_per_session=3, **BLOCKS_ONLY)
    with Client(pandod.address) as client, Client(pandod.address) as other:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        other.open_kinds([spec()])
        store(client, memory, 1, kind, keys(4))
        client.acquire_blocks(1, [of(kind, keys(2))])
        with pytest.raises(SessionLimitError, match="--max-block-locks-per-session"):
            client.acquire_blocks(2, [of(kind, keys(2))])
        assert client.stats().blocks.locks == 1
        assert are_places(other.acquire_blocks(1, [of(kind, keys(3))])).all()
        client.release_blocks([1])
        assert are_places(client.acquire_blocks(2, [of(kind, keys(3))])).all()


def test_a_reserved_block_too_many_is_refused_and_changes_nothing(start_pandod):
    pandod = start_pandod(max_reserved_blocks_per_session=3, **BLOCKS_ONLY)
    with Client(pandod.address) as client:
        (kind,) = client.open_kinds([spec()])
        client.reserve_blocks(1, [of(kind, keys(2))])
        refused = refusal(
            lambda: client.reserve_blocks(2, [of(kind, keys(2, prompt=1))])
        )
        assert isinstance(refused, SessionLimitError)
        assert "--max-reserved-blocks-per-session" in str(refused)
        assert client.stats().blocks.reserved_blocks == 2
        client.publish_blocks(1)
        assert are_places(client.reserve_blocks(2, [of(kind, keys(3, prompt=1))])).all()


def test_what_locks_and_reservations_keep_is_in_the_account_of_bytes(start_pandod):
    pandod = start_pandod(max_kept_bytes_per_session="64KiB", **BLOCKS_ONLY)
    with Client(pandod.address) as client:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec(shard_bytes=4096)])
        store(client, memory, 1, kind, keys(1000))

        def fill() -> None:
            for lock in itertools.count(1):
                client.acquire_blocks(lock, [of(kind, keys(1000))])

        refused = refusal(fill)
        assert refused.reason == "SESSION_LIMIT"
        assert "--max-kept-bytes-per-session" in refused.message
        taken = client.stats().blocks.locks
        assert 1 <= taken < 20
        client.release_blocks(range(1, taken + 1))
        client.acquire_blocks(100, [of(kind, keys(1000))])


def test_the_most_keys_of_a_call_are_answered_and_one_more_is_refused(client):
    memory = client.attach_memory()
    (kind,) = client.open_kinds([spec(shard_bytes=4096)])
    room = memory.bytes.size // 4096
    named = keys(MOST_KEYS)
    reserved = client.reserve_blocks(1, [of(kind, named)])
    assert are_places(reserved).sum() == room
    client.publish_blocks(1)
    found = client.acquire_blocks(1, [of(kind, named)])
    assert found[:room].tolist() == reserved[:room].tolist()
    client.release_blocks([1])
    for call in (
        lambda: client.lookup_blocks([of(kind, [*named, named[0]])]),
        lambda: client.acquire_blocks(2, [of(kind, [*named, named[0]])]),
        lambda: client.reserve_blocks(2, [of(kind, named), of(kind, named[:1])]),
    ):
        refused = refusal(call)
        assert refused.reason == "INVALID_FIELD"
        assert "16385" in refused.message
        assert "16384" in refused.message
    assert client.stats().blocks.locks == 0


def test_keys_that_are_none_name_the_field_and_its_limit(client):
    (kind,) = client.open_kinds([spec()])
    whole = b"".join(keys(2))
    for asked, fault in (
        (BlockKeys(kind.number, whole[:-1]), "keys"),
        (BlockKeys(kind.number, whole, whole[:5]), "before"),
        (BlockKeys(kind.number, whole, b"", Shape.WINDOW, 0), "window"),
        (BlockKeys(kind.number, whole, b"", 9), "shape"),
    ):
        refused = refusal(lambda asked=asked: client.lookup_blocks([asked]))
        assert refused.reason == "INVALID_FIELD", refused
        assert fault in refused.message, refused
    for number in (0, kind.number + 1, 2**32 - 1):
        unknown = BlockKeys(number, whole)
        refused = refusal(lambda unknown=unknown: client.lookup_blocks([unknown]))
        assert refused.reason == "KIND_UNKNOWN"
        assert str(number) in refused.message
    for call in (
        lambda: client.acquire_blocks(0, [of(kind, keys(1))]),
        lambda: client.reserve_blocks(0, [of(kind, keys(1))]),
    ):
        assert isinstance(refusal(call), InvalidRequestError)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("identity", b""),
        ("identity", b"x" * 257),
        ("label", "x" * 257),
        ("key_bytes", 15),
        ("key_bytes", 65),
        ("shard_bytes", 0),
        ("shard_bytes", MIB + 1),
        ("shard_bytes", 2**64 - 1),
        ("shards", 0),
        ("shards", 2**32 - 1),
    ],
)
def test_a_kind_that_cannot_be_is_refused_with_its_field(client, field, value):
    fields = {
        "identity": b"i",
        "label": "",
        "key_bytes": KEY_BYTES,
        "shard_bytes": 4096,
        "shards": 1,
    }
    refused = refusal(lambda: client.open_kinds([KindSpec(**fields | {field: value})]))
    assert isinstance(refused, InvalidRequestError)
    assert field in refused.message or "--block-extent" in refused.message
    assert client.stats().blocks.kinds == 0


def test_kinds_are_opened_at_most_256_at_once(client):
    many = [spec(str(i), shard_bytes=4096) for i in range(257)]
    assert "256" in refusal(lambda: client.open_kinds(many)).message
    assert len(client.open_kinds(many[:256])) == 256
    assert refusal(lambda: client.open_kinds([])).reason == "EMPTY_REQUEST"
    two = [spec("same", shard_bytes=4096), spec("same", shard_bytes=8192)]
    assert isinstance(refusal(lambda: client.open_kinds(two)), LayoutMismatchError)


def test_bytes_that_are_no_request_change_nothing(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY)
    with RawCalls(pandod.address) as raw, Client(pandod.address) as client:
        client.open_kinds([spec()])
        methods = blocks_pb2.DESCRIPTOR.services_by_name["Blocks"].methods_by_name
        assert len(methods) == 10
        for method in methods:
            name = f"{SERVICE}/{method}"
            assert raw.failure(name, b"\xff\xff\xff") == ("INTERNAL", "INTERNAL")
            # The empty request names no session.
            code, reason = raw.failure(name, b"")
            assert (code, reason) in (
                ("FAILED_PRECONDITION", "SESSION_LOST"),
                ("INVALID_ARGUMENT", "EMPTY_REQUEST"),
            )
        with raw.session() as session:
            for request in (
                blocks_pb2.PublishBlocksRequest(reservation=1, indices=[1] * 17_000),
                blocks_pb2.DiscardBlocksRequest(reservation=1, indices=[1] * 17_000),
                blocks_pb2.ReleaseBlocksRequest(locks=[1] * 17_000),
            ):
                request.session_id = session
                method = type(request).__name__.removesuffix("Request")
                refused = raw.failure(f"{SERVICE}/{method}", request)
                assert refused == ("INVALID_ARGUMENT", "INVALID_FIELD")
        figures = client.stats().blocks
        assert (figures.locks, figures.reservations) == (0, 0)


def test_a_draining_server_lets_finish_what_runs_and_admits_nothing_new(start_pandod):
    pandod = start_pandod(**BLOCKS_ONLY | {"drain_timeout": "20s"})
    with Client(pandod.address) as client, Client(pandod.address) as idle:
        memory = client.attach_memory()
        (kind,) = client.open_kinds([spec()])
        idle.open_kinds([spec()])
        store(client, memory, 1, kind, keys(2))
        client.acquire_blocks(1, [of(kind, keys(2))])
        pandod.terminate()
        eventually(lambda: client.draining and idle.draining)
        for call in (
            lambda: idle.acquire_blocks(1, [of(kind, keys(1))]),
            lambda: idle.reserve_blocks(1, [of(kind, keys(1, prompt=2))]),
        ):
            assert refusal(call).reason == "DRAINING"
        mine = client.reserve_blocks(2, [of(kind, keys(1, prompt=2))])
        assert are_places(mine).all()
        client.publish_blocks(2)
        client.release_blocks([1])
        assert pandod.wait() == 0


TENANTS = """
- name: tenant-a
  role: worker
  token_file: FOLDER/a.token
  namespaces:
  - extra_key: tenant-a/*
- name: reader
  role: reader
  token_file: FOLDER/reader.token
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of_tokens() as path:
        yield path


def test_a_tenant_opens_and_finds_kinds_of_its_own_namespaces_only(folder):
    ours = Namespace(extra_key="tenant-a/lora")
    others = [None, Namespace(extra_key="tenant-b/lora")]
    with guarded(folder, TENANTS, **BLOCKS_ONLY) as pandod:
        with Client(pandod.address, token=token_of("a")) as client:
            (kind,) = client.open_kinds([spec(namespace=ours)])
            assert client.find_kinds([(ours, kind.spec.identity)]) == [kind]
            for other in others:
                for call in (
                    lambda ns: client.open_kinds(
                        [spec(namespace=ours), spec("b", namespace=ns)]
                    ),
                    lambda ns: client.find_kinds([(ns, kind.spec.identity)]),
                ):
                    with pytest.raises(AccessDeniedError) as refused:
                        call(other)
                    assert refused.value.reason == "NAMESPACE_REFUSED"
        with calls(pandod, "reader") as reader:
            for method in blocks_pb2.DESCRIPTOR.services_by_name["Blocks"].methods:
                refused = reader.failure(f"{SERVICE}/{method.name}", b"")
                assert refused == ("PERMISSION_DENIED", "ROLE_REFUSED")


def test_sizes_that_cannot_be_are_refused_at_the_start(tmp_path):
    for options, told in (
        (["--memory=1MiB"], "at least|from 16777216"),
        (["--memory=64MiB", "--block-extent=3MiB"], "power of two"),
        (["--memory=64MiB", "--block-extent=2048"], "power of two"),
        (["--memory=900TiB"], "memory is"),
    ):
        text = refused_start(tmp_path, *options)
        assert any(part in text for part in told.split("|")), text
