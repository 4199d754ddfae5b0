"""The rights of callers of a pandod that has a list of credentials."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from certificates import Authority
from credentials import ROLES, calls, config_of, folder_of_tokens, guarded, token_of
from eventually import eventually
from metrics_page import MetricsPage, free_address
from pando_kv import AccessDeniedError, AllBlocksCleared, Client, Operator
from pando_kv._proto.pando.v1 import (
    admin_pb2,
    data_path_pb2,
    events_pb2,
    pool_pb2,
    prefix_cache_pb2,
    session_pb2,
)
from pando_kv.errors import from_rpc_error
from pandoctl import Pandoctl
from pandod_process import PAGE_TOKENS, SERVING, Pandod, refused_start, serving
from raw_calls import RawCalls, RunningStream
from users import STRANGER, acting_as, needs_root

PREFIXES = "pando.v1.PrefixCache"
HEALTH_WATCH = "grpc.health.v1.Health/Watch"
SERVICE_UNKNOWN = b"\x08\x03"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
LIST_SERVICES = b"\x3a\x01*"
TOKENS = list(range(PAGE_TOKENS))
# docs/security.md gives the role that each method needs.
READER = {
    f"{PREFIXES}/MatchPrefix",
    f"{PREFIXES}/MatchPrefixes",
    "pando.v1.PagePool/DescribePool",
    "pando.v1.Events/Watch",
    *(
        f"pando.v1.Admin/{name}"
        for name in (
            *("GetStats", "ListNamespaces", "ListSessions", "ListLocks"),
            *("ListQuarantine", "ListKinds", "ExplainBlock"),
        )
    ),
    "pando.v1.Admin/ExplainMatch",
    "pando.v1.Admin/DumpTree",
    "pando.v1.DataPath/Batch",
}
WORKER = {
    f"{PREFIXES}/Insert",
    f"{PREFIXES}/Lock",
    f"{PREFIXES}/Unlock",
    "pando.v1.PagePool/AttachPool",
    "pando.v1.PagePool/AllocatePages",
    "pando.v1.PagePool/FreePages",
    "pando.v1.Sessions/Open",
    "pando.v1.DataPath/OpenLane",
    "pando.v1.Sessions/End",
}


def all_methods() -> list[str]:
    modules = (
        admin_pb2,
        data_path_pb2,
        events_pb2,
        pool_pb2,
        prefix_cache_pb2,
        session_pb2,
    )
    return [
        f"{service.full_name}/{method.name}"
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of_tokens() as path:
        yield path


@pytest.fixture
def pandod(folder: Path) -> Iterator[Pandod]:
    """Yields a pandod with a credential for each role."""
    entries = [
        f"\n- {{name: the-{role}, role: {role}, token_file: FOLDER/{role}.token}}"
        for role in ROLES
    ]
    with guarded(folder, "".join(entries)) as pandod:
        yield pandod


def is_refused(raw: RawCalls, method: str) -> bool:
    """Returns whether a known caller may not call the method, whatever it sends."""
    with contextlib.closing(raw.open_stream(method)) as stream:
        stream.send(b"")
        stream.half_close()
        try:
            # A watch that has begun does not end by itself.
            stream.next()
        except StopIteration:
            return False
        except grpc.RpcError as error:
            assert error.code() != grpc.StatusCode.UNAUTHENTICATED
            return from_rpc_error(error).reason == "ROLE_REFUSED"
        return False


# Callers that pandod knows or does not know.


@pytest.mark.parametrize("token", [None, "unknown"])
def test_who_is_not_known_may_only_ask_for_health(pandod, token):
    with calls(pandod, token) as raw:
        for method in all_methods():
            refused = raw.stream_failure(method, b"")
            assert refused == ("UNAUTHENTICATED", "NO_CREDENTIAL"), method
        assert raw.unary("grpc.health.v1.Health/Check") == SERVING
        with contextlib.closing(raw.open_stream(HEALTH_WATCH)) as watch:
            watch.send(b"")
            assert watch.next() == SERVING
        with contextlib.closing(raw.open_stream(REFLECTION)) as stream:
            stream.send(LIST_SERVICES)
            assert b"pando.v1.PrefixCache" in stream.next()


def test_the_long_names_that_strangers_watch_are_not_kept(pandod):
    name = b"x" * (2 << 20)
    # The prefix holds the field and its size.
    request = b"\x0a\x80\x80\x80\x01" + name

    def resident_bytes() -> int:
        pages = Path(f"/proc/{pandod.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    with calls(pandod, None) as raw, contextlib.ExitStack() as watches:
        before = resident_bytes()
        for _ in range(40):
            watch = raw.open_stream(HEALTH_WATCH)
            watches.callback(watch.close)
            watch.send(request)
            assert watch.next() == SERVICE_UNKNOWN
        assert resident_bytes() - before < 20 * len(name)


def test_strangers_can_take_neither_threads_nor_the_calls_of_others(pandod):
    """A reflection stream keeps a thread of gRPC as long as it is open."""

    def threads() -> list[str]:
        tasks = Path(f"/proc/{pandod.pid}/task").iterdir()
        return [(task / "comm").read_text().strip() for task in tasks]

    def is_served(stream: RunningStream) -> bool:
        stream.send(LIST_SERVICES)
        try:
            return stream.next() != b""
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            return False

    # The watch needs this thread, which might not be available later.
    eventually(lambda: "events" in threads())
    before = len(threads())
    with calls(pandod, None) as stranger, calls(pandod, "admin") as known:
        with contextlib.ExitStack() as held:
            streams = [stranger.open_stream(REFLECTION) for _ in range(100)]
            for stream in streams:
                held.callback(stream.close)
            taken = sum(is_served(stream) for stream in streams)
            assert 0 < taken < 10
            assert len(threads()) < before + 10
            assert stranger.unary("grpc.health.v1.Health/Check") == SERVING
            assert known.unary("pando.v1.Admin/GetStats") != b""

        def is_served_again() -> bool:
            with contextlib.closing(stranger.open_stream(REFLECTION)) as stream:
                return is_served(stream)

        eventually(is_served_again)


def test_a_client_that_is_not_known_is_told_so_at_once(pandod):
    with pytest.raises(AccessDeniedError) as refused:
        Client(pandod.address, token="not-the-right-one-at-all", timeout=60)
    assert refused.value.reason == "NO_CREDENTIAL"
    eventually(lambda: "NO_CREDENTIAL" in pandod.log())
    assert "not-the-right-one-at-all" not in pandod.log()


def test_pandoctl_shows_a_token(pandod, folder):
    ctl = Pandoctl(pandod.address)
    assert ctl("--token-file", folder / "reader.token", "status").code == 0
    refused = ctl("--token-file", folder / "reader.token", "--yes", "flush", "--all")
    assert refused.code == 1
    assert "Admin/Flush needs the role admin" in refused.err
    assert ctl("status").code == 1


def test_the_workers_of_a_bench_show_a_token(pandod, folder):
    ctl = Pandoctl(pandod.address)
    bench = ("-o", "json", "--yes", "bench", "--requests", 4, "--clients", 2)
    bench += ("--prompt-tokens", PAGE_TOKENS, "--system-prompt-tokens", 0)
    report = ctl("--token-file", folder / "admin.token", *bench).json()
    assert (report["requests"], report["clients"]) == (4, 2)
    refused = ctl("--token-file", folder / "reader.token", *bench)
    assert refused.code == 1
    assert "needs the role worker" in refused.err
    assert ctl(*bench).code == 1


def test_the_workers_of_a_replay_show_a_token(pandod, folder):
    trace = folder / "trace.jsonl"
    trace.write_text('{"input_length": 600, "output_length": 1, "hash_ids": [1, 2]}\n')
    replay = ("-o", "json", "--yes", "replay", trace)
    ctl = Pandoctl(pandod.address)
    report = ctl("--token-file", folder / "admin.token", *replay).json()
    assert report["requests"] == 1
    assert ctl(*replay).code == 1


def test_pandoctl_takes_no_empty_token_file_for_none(folder):
    with serving(folder) as pandod:
        ctl = Pandoctl(pandod.address)
        (folder / "empty").write_text("\n")
        refused = ctl("--token-file", folder / "empty", "status")
    assert refused.code == 2
    assert f"--token-file: {folder}/empty is empty" in refused.err


def test_tokens_that_change_in_the_file_count_without_a_restart(pandod, folder):
    file = folder / "reader.token"
    file.write_text(f"{token_of('reader')}\n{token_of('new')}\n")
    with calls(pandod, "new") as new, calls(pandod, "reader") as old:
        method = "pando.v1.PagePool/DescribePool"

        def is_known(raw: RawCalls) -> bool:
            return not raw.start(method, b"").has_failed()

        eventually(lambda: is_known(new))
        assert is_known(old)
        file.write_text(f"{token_of('new')}\n")
        eventually(lambda: not is_known(old))
        assert is_known(new)


def test_a_token_that_is_taken_away_ends_the_streams_of_who_shows_it(folder):
    file = folder / "worker.token"
    entries = """
- {name: workers, role: worker, token_file: FOLDER/worker.token}
- {name: others, role: admin, token_file: FOLDER/admin.token}
"""
    method = "pando.v1.PagePool/AllocatePages"
    with (
        guarded(folder, entries, session_grace="1h") as pandod,
        calls(pandod, "worker") as old,
        calls(pandod, "new") as new,
        calls(pandod, "admin") as other,
        contextlib.closing(old.open_stream("pando.v1.Sessions/Open")) as session,
        contextlib.closing(old.open_stream("pando.v1.Events/Watch")) as watch,
        contextlib.closing(other.open_stream("pando.v1.Events/Watch")) as others_watch,
    ):
        session.send(b"")
        opened = session_pb2.SessionEvent.FromString(session.next()).opened
        for stream in (watch, others_watch):
            stream.send(b"")
            stream.next()
        allocate = pool_pb2.AllocatePagesRequest(session_id=opened.session_id, pages=1)
        # pandod accepts both tokens for a while.
        file.write_text(f"{token_of('worker')}\n{token_of('new')}\n")
        eventually(lambda: not new.start(method, allocate).has_failed())
        old.unary(method, allocate)
        file.write_text(f"{token_of('new')}\n")
        assert session.failure() == ("UNAUTHENTICATED", "NO_CREDENTIAL")
        assert watch.failure() == ("UNAUTHENTICATED", "NO_CREDENTIAL")
        # The session belongs to a worker that has lost its connection.
        resume = session_pb2.OpenSessionRequest(resume_session_id=opened.session_id)
        with contextlib.closing(new.open_stream("pando.v1.Sessions/Open")) as again:
            again.send(resume)
            resumed = session_pb2.SessionEvent.FromString(again.next()).opened
            assert resumed.session_id == opened.session_id
            pages = pool_pb2.AllocatePagesResponse.FromString(
                new.unary(method, allocate)
            ).page_ids
            insert = prefix_cache_pb2.InsertRequest(
                session_id=opened.session_id, tokens=TOKENS, page_ids=pages
            )
            new.unary(f"{PREFIXES}/Insert", insert)
            assert others_watch.next() != b""


def test_tokens_stay_while_their_file_has_none_that_is_good(pandod, folder):
    file = folder / "reader.token"

    def refusals() -> list[str]:
        return [
            event["error"]
            for event in pandod.events()
            if event["msg"] == "tokens stay as they are"
        ]

    mistakes = [
        (lambda: file.write_text("short\n"), "has 5 bytes; must have at least 16"),
        (lambda: file.write_text(""), "cannot be read, or is empty"),
        (lambda: file.write_text(" \n\n"), "has no token"),
        (file.unlink, "cannot be read"),
        (file.mkdir, "cannot be read"),
    ]
    with calls(pandod, "reader") as raw:
        for make, error in mistakes:
            before = len(refusals())
            make()
            eventually(lambda before=before: len(refusals()) > before)
            assert f"token_file {file}" in refusals()[-1]
            assert error in refusals()[-1]
            raw.unary("pando.v1.Admin/GetStats")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none", "cannot be read"),
        ("empty", "cannot be read, or is empty"),
        ("blank", "has no token"),
        ("folder", "cannot be read"),
    ],
)
def test_a_token_file_without_a_token_is_an_error_at_the_start(folder, name, says):
    (folder / "empty").touch()
    (folder / "blank").write_text("\n")
    (folder / "folder").mkdir()
    entry = f"\n- {{name: a, role: reader, token_file: {folder}/{name}}}"
    said = refused_start(folder, f"--config={config_of(folder, entry)}")
    assert f"token_file {folder}/{name} {says}" in said


@needs_root
def test_a_process_is_recognised_by_its_user(folder):
    users = """
- {name: root, role: admin, uid: 0}
- {name: stranger, role: reader, uid: %d}
"""
    with guarded(folder, users % STRANGER, socket_mode="0666") as pandod:
        with RawCalls(pandod.address) as raw:
            assert not is_refused(raw, f"{PREFIXES}/Evict")
        with acting_as(STRANGER):
            raw = RawCalls(pandod.address)
            assert is_refused(raw, f"{PREFIXES}/Evict")
        # The connection stays with the user that opened it.
        with raw:
            assert is_refused(raw, f"{PREFIXES}/Insert")
            assert not is_refused(raw, f"{PREFIXES}/MatchPrefix")


def test_a_client_over_tcp_is_recognised_by_its_certificate(folder):
    authority = Authority(folder / "authority")
    server = authority.sign("pandod")
    tcp = free_address()
    options = {
        "tcp": tcp,
        "tls_certificate": server.certificate,
        "tls_key": server.key,
        "tls_client_ca": authority.certificate,
    }
    names = "\n- {name: the-worker, role: worker, certificate_name: engine}\n"
    with guarded(folder, names, **options):
        with Client(tcp, tls=authority.sign("engine")) as client:
            client.insert(TOKENS, client.allocate_pages(1))
            with pytest.raises(AccessDeniedError, match="ROLE_REFUSED"):
                client.evict(1)
        with pytest.raises(AccessDeniedError, match="NO_CREDENTIAL"):
            Client(tcp, tls=authority.sign("somebody"))


# The rights of the roles.


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_call_its_methods_and_no_others(pandod, role):
    may = READER | (WORKER if role != "reader" else set())
    methods = set(all_methods())
    with calls(pandod, role) as raw:
        allowed = {m for m in sorted(methods) if not is_refused(raw, m)}
    assert allowed == (methods if role == "admin" else may)


def test_a_refusal_names_the_method_the_role_and_the_credential(pandod):
    with Client(pandod.address, token=token_of("worker")) as client:
        with pytest.raises(AccessDeniedError) as refused:
            client.evict(1)
    assert refused.value.message == (
        "pando.v1.PrefixCache/Evict needs the role admin; "
        "credential 'the-worker' has worker"
    )


def test_a_reader_watches_and_looks_without_a_session(pandod):
    with Operator(pandod.address, token=token_of("reader")) as router:
        assert router.stats().sessions == 0
        with router.watch_events() as events:
            assert type(next(events)) is AllBlocksCleared
        with pytest.raises(AccessDeniedError):
            router.flush()


def test_a_reader_may_match_but_not_lock(pandod):
    with calls(pandod, "reader") as raw:
        method = f"{PREFIXES}/MatchPrefix"
        request = prefix_cache_pb2.MatchPrefixRequest(tokens=TOKENS)
        answer = raw.unary(method, request)
        assert (
            prefix_cache_pb2.MatchPrefixResponse.FromString(answer).matched_tokens == 0
        )
        request.lock = True
        assert raw.failure(method, request) == ("PERMISSION_DENIED", "ROLE_REFUSED")


def test_a_reader_may_not_start_a_load(pandod):
    with calls(pandod, "reader") as raw:
        method = f"{PREFIXES}/MatchPrefix"
        request = prefix_cache_pb2.MatchPrefixRequest(tokens=TOKENS, load="LOAD_NO")
        assert raw.unary(method, request) != b""
        request.load = prefix_cache_pb2.LOAD_START
        assert raw.failure(method, request) == ("PERMISSION_DENIED", "ROLE_REFUSED")


def test_a_session_is_for_the_credential_that_opened_it(pandod):
    with calls(pandod, "worker") as mine, calls(pandod, "admin") as theirs:
        with mine.session() as session:
            request = pool_pb2.AllocatePagesRequest(session_id=session, pages=1)
            method = "pando.v1.PagePool/AllocatePages"
            refused = ("PERMISSION_DENIED", "SESSION_REFUSED")
            assert theirs.failure(method, request) == refused
            resume = session_pb2.OpenSessionRequest(resume_session_id=session)
            assert theirs.stream_failure("pando.v1.Sessions/Open", resume) == refused
            assert mine.unary(method, request) != b""


def test_refused_calls_are_counted_by_what_they_lacked(folder):
    http = free_address()
    reader = "\n- {name: a, role: reader, token_file: FOLDER/reader.token}\n"
    with guarded(folder, reader, http=http) as pandod:
        with calls(pandod, "reader") as known, calls(pandod, None) as unknown:
            known.failure(f"{PREFIXES}/Evict", b"")
            unknown.failure(f"{PREFIXES}/Evict", b"")
        counts = MetricsPage(http).by(
            "grpc_code", "grpc_server_handled_total", grpc_method="Evict"
        )
    assert (counts["PermissionDenied"], counts["Unauthenticated"]) == (1, 1)


# The list of credentials.


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (" []", "credentials must be a list that is not empty"),
        ("\n- {name: a, role: reader}", "gives 0 of uid, token_file and"),
        ("\n- {name: a, role: reader, uid: 1, token_file: f}", "gives 2 of uid"),
        ("\n- {name: a, role: king, uid: 1}", "role is 'king'; must be one of"),
        ("\n- {role: reader, uid: 1}", "credentials[0]: name is missing"),
        ("\n- {name: a, role: reader, uid: -1}", "uid is '-1'; must be a whole"),
        ("\n- {name: a, rolle: reader}", "did you mean 'role'"),
        (
            "\n- {name: a, role: admin, uid: 1, namespaces: [{extra_key: b}]}",
            "namespaces limit a reader or a worker",
        ),
        (
            "\n- {name: a, role: worker, uid: 1, namespaces: []}",
            "namespaces must be a list that is not empty",
        ),
        (
            "\n- {name: a, role: reader, uid: 1}\n- {name: a, role: reader, uid: 2}",
            "credentials[1]: name is 'a', as of another one",
        ),
    ],
)
def test_a_list_that_is_not_good_is_refused(tmp_path, entries, says):
    assert says in refused_start(tmp_path, f"--config={config_of(tmp_path, entries)}")
