"""pandod as a process: its options, start, probes and end."""

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
import yaml
from eventually import eventually
from metrics_page import free_address, get
from pando_kv import Client, UnavailableError
from pandod_process import (
    PAGE_TOKENS,
    REPOSITORY,
    SERVING,
    Pandod,
    binary,
    clean_environment,
    refused_start,
    serving,
)
from raw_calls import RawCalls

NOT_SERVING = b"\x08\x02"
HEALTH = "grpc.health.v1.Health/Check"
TOKENS = list(range(2 * PAGE_TOKENS))


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [binary(), *map(str, arguments)],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


# Options.


def test_version_and_help_are_printed():
    version = run("--version")
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("pandod ")
    help_text = run("--help")
    assert help_text.returncode == 0
    for option in ("--socket", "--pool-pages", "--config", "--check-config"):
        assert option in help_text.stdout


def test_check_config_says_what_the_options_mean_and_starts_nothing(tmp_path):
    checked = run(
        *("--check-config", "--socket", tmp_path / "pando.sock", "--pool-pages=99"),
        *("--tier-disk", tmp_path / "tier", "--tier-disk-bytes=1GiB", "--model=m"),
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "99 pages" in checked.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--socket=/nowhere/p.sock"], "the folder /nowhere does not exist"),
        (["--memory=1PiB"], "memory is 1125899906842624"),
        (["--memory=4TiB"], "this process may use"),
        (["--memory-socket=/nowhere/m.sock"], "cannot bind /nowhere/m.sock"),
        (["--socket-group=no-such-group"], "there is no such group"),
        (["--pool-bytes=1TiB"], "this machine has"),
        (["--tier-host-bytes=1TiB"], "tier-host-bytes is 1099511627776; pandod may"),
        (
            ["--pool-bytes=8MiB", "--tier-host-bytes=1TiB"],
            "tier-host-bytes is 1099511627776; pandod may",
        ),
        (
            ["--tier-disk=/nowhere/tier", "--tier-disk-bytes=1GiB", "--model=m"],
            "make the folder /nowhere/tier",
        ),
        (
            ["--tier-disk={folder}/t", "--tier-disk-bytes=900TiB", "--model=m"],
            "tier-disk-bytes is",
        ),
        (
            [
                *("--tcp=127.0.0.1:0", "--tls-certificate=/nowhere/c"),
                *("--tls-key=/nowhere/k", "--tls-client-ca=/nowhere/ca"),
            ],
            "tls-certificate is '/nowhere/c'",
        ),
        (
            [
                *("--tier-shared=file:///tmp", "--model=m"),
                "--tier-shared-key-file=/nowhere/key",
            ],
            "tier-shared-key-file: open /nowhere/key",
        ),
    ],
)
def test_check_config_finds_what_a_start_would_not_have(tmp_path, flags, says):
    flags = [flag.format(folder=tmp_path) for flag in flags]
    checked = run("--check-config", f"--socket={tmp_path}/p.sock", *flags)
    assert (checked.returncode, checked.stdout) == (2, "")
    assert says in checked.stderr
    assert checked.stderr.startswith("pandod: ") and checked.stderr.count("\n") == 1
    assert says in refused_start(tmp_path, *flags)


def test_check_config_leaves_the_tiers_of_an_open_pool_to_its_layout(tmp_path):
    flags = [f"--socket={tmp_path}/p.sock", "--tier-host-bytes=1MiB"]
    assert run("--check-config", "--pool-bytes=8MiB", *flags).returncode == 0


def test_check_config_passes_beside_a_pandod_that_serves_with_these_options(tmp_path):
    address = free_address()
    with serving(tmp_path, http=address) as pandod:
        checked = run(
            "--check-config", f"--socket={pandod.socket}", f"--http={address}"
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_pandod_starts_beside_each_variable_that_another_program_of_pando_reads():
    """Sets every variable that the sources read, except pandod's own options."""
    read = set()
    for folder in ("clients/python/src", "tools", "examples", "bench"):
        for path in (REPOSITORY / folder).rglob("*"):
            if path.suffix in (".py", ".cc"):
                read |= set(re.findall(r'"(PANDO_[A-Z_]+)"', path.read_text()))
    for path in (REPOSITORY / "tests").rglob("*"):
        if path.suffix in (".py", ".cc"):
            asks = r'(?:environ\.get|FromEnvironment)\(\s*"(PANDO_[A-Z_]+)"'
            read |= set(re.findall(asks, path.read_text()))
    read |= set(
        re.findall(r"\$\{(PANDO_[A-Z_]+)", (REPOSITORY / "Makefile").read_text())
    )
    assert {"PANDO_ADDRESS", "PANDO_TOKEN", "PANDO_TEST_SEED"} <= read
    printed = run("--print-config", **dict.fromkeys(read, "1"))
    assert (printed.returncode, printed.stderr) == (0, "")


def test_a_socket_in_a_folder_that_does_not_exist_is_an_error_that_says_so(tmp_path):
    folder = tmp_path / "absent"
    said = refused_start(folder)
    assert f"the folder {folder} does not exist; make it" in said


def test_a_pool_of_more_pages_than_its_index_has_room_for_is_an_error_that_says_so(
    tmp_path,
):
    said = refused_start(
        tmp_path,
        *("--pool-pages=4294967295", "--page-tokens=1", "--layers=1"),
        *("--heads=1", "--head-size=1", "--kv-planes=1", "--dtype=float8_e5m2"),
    )
    assert "the pool has 4294967295 pages, whose index alone needs" in said


def test_check_config_refuses_what_cannot_be():
    checked = run("--check-config", "--pool-pages", "1")
    assert checked.returncode == 2
    assert "pool-pages is '1'" in checked.stderr


def test_the_documentation_has_every_option_as_pandod_prints_it():
    generator = REPOSITORY / "tools" / "options_docs.py"
    subprocess.run([sys.executable, generator, "--check", binary()], check=True)


def test_print_config_prints_a_file_that_means_the_same(tmp_path):
    flags = ("--pool-bytes=1GiB", "--socket=a.sock")
    first = run("--print-config", *flags, PANDO_LAYERS="3")
    assert (first.returncode, first.stderr) == (0, "")
    assert "\nlayers: 3  # PANDO_LAYERS\n" in first.stdout
    config = tmp_path / "config.yaml"
    config.write_text(first.stdout)
    second = run("--print-config", "--config", config)
    assert yaml.safe_load(second.stdout) == yaml.safe_load(first.stdout)


@pytest.mark.parametrize(
    ("arguments", "environment", "file", "says"),
    [
        (["--pool-page=9"], {}, "", ["'--pool-page'", "did you mean '--pool-pages'"]),
        (["--dtype=int8"], {}, "", ["dtype", "'int8'", "bfloat16"]),
        (["--quarantine=5"], {}, "", ["quarantine", "'5'", "duration with unit"]),
        (["--http=nonsense"], {}, "", ["http", "'nonsense'", "host:port"]),
        (["--socket=" + "x" * 200], {}, "", ["socket", "107"]),
        (["stray"], {}, "", ["unexpected argument 'stray'"]),
        ([], {"PANDO_LAYER": "9"}, "", ["PANDO_LAYER", "mean 'PANDO_LAYERS'"]),
        ([], {"PANDO_FOO": "9"}, "", ["variable 'PANDO_FOO'; see --help"]),
        ([], {"PANDO_LAYERS": "many"}, "", ["layers", "'many'", "whole number"]),
        ([], {}, "layer: 9", ["config.yaml", "line 1", "mean 'layers'"]),
        ([], {}, "pool:\n  pagse: 9", ["line 2", "'pool-pagse'", "mean 'pool-pages'"]),
        ([], {}, "layers: many", ["layers", "'many'", "whole number"]),
        ([], {}, "layers: [1, 2]", ["config.yaml", "layers is a list"]),
        ([], {}, "a: b: c", ["config.yaml", "line 1"]),
        (["--eviction-policy=random"], {}, "", ["'random'", "lru, lfu, fifo, mru"]),
        (["--low-free-pages=9"], {}, "", ["high-free-pages is 0", "give both"]),
        ([], {}, "quotas:\n- {class: a}", ["line 2", "quotas[0]", "extra_key"]),
        (
            [],
            {},
            "pool-pages: 9\nquotas:\n- {class: a, extra_key: a, floor_pages: 9}",
            ["floor_pages", "9", "at most 8"],
        ),
    ],
)
def test_a_bad_option_is_named_and_ends_with_status_2(
    tmp_path, arguments, environment, file, says
):
    config = tmp_path / "config.yaml"
    config.write_text(file)
    refused = run(*arguments, "--config", config, **environment)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("pandod: ")
    for part in says:
        assert part in refused.stderr


def test_flags_override_the_environment_which_overrides_the_file(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("pool:\n  pages: 33\nlayers: 3\nheads: 3\nmodel: from-the-file\n")
    # The fixture would set each of these as a flag; this test sets only `heads` so.
    server = Pandod(
        tmp_path,
        heads=5,
        pool_pages=None,
        layers=None,
        page_tokens=None,
        head_size=None,
        dtype=None,
    )
    try:
        server.start(PANDO_CONFIG=str(config), PANDO_LAYERS="4", PANDO_HEADS="4")
        with Client(server.address) as client:
            pool = client.describe_pool()
    finally:
        server.close_in_order()
    assert (pool.capacity_pages, pool.model) == (33, "from-the-file")
    assert (pool.layout.layers, pool.layout.heads) == (4, 5)
    # This is the default.
    assert pool.layout.page_tokens == 16


# Start.


def test_a_second_pandod_on_the_same_socket_is_refused(start_pandod, tmp_path):
    pandod = start_pandod()
    elsewhere = tmp_path / "elsewhere.sock"
    for options in ([], ["--memory-socket", elsewhere]):
        second = run("--socket", pandod.socket, "--http=", "--pool-pages=2", *options)
        assert second.returncode == 1
        said = second.stdout + second.stderr
        assert "another server listens on" in said
        assert re.search("; choose another with --socket", said)
    assert not elsewhere.exists()
    with Client(pandod.address) as client, client.attach_pool():
        assert client.stats().sessions == 1


def test_a_pool_on_a_gpu_that_is_not_there_is_refused_with_the_reason(tmp_path):
    process = run(
        *("--socket", tmp_path / "pando.sock", "--http="),
        *("--pool-memory", "cuda", "--pool-devices", "99"),
    )
    assert process.returncode == 1
    output = process.stdout + process.stderr
    assert re.search("cannot start.*(CUDA|no GPU is '99'; there are: 0)", output)
    assert list(tmp_path.iterdir()) == []


def test_a_second_pandod_on_the_same_http_port_is_refused(start_pandod, tmp_path):
    http = free_address()
    start_pandod(http=http)
    sockets = tmp_path / "second"
    sockets.mkdir()
    second = run("--socket", sockets / "pando.sock", f"--http={http}", "--pool-pages=2")
    assert second.returncode == 1
    said = second.stdout + second.stderr
    assert http in said
    assert "; choose another with --http" in said
    assert list(sockets.iterdir()) == []
    assert get(http, "/healthz")[0] == 200


def test_the_sockets_of_a_dead_pandod_are_replaced(start_pandod):
    pandod = start_pandod()
    pandod.kill()
    assert pandod.socket.is_socket() and pandod.memory_socket.is_socket()
    pandod.start()
    with Client(pandod.address) as client, client.attach_pool():
        assert client.generation == 1


def test_a_file_that_is_no_socket_is_left_alone(tmp_path):
    for name in ("pando.sock", "memory.sock"):
        precious = tmp_path / name
        precious.write_text("precious")
        refused = run("--socket", tmp_path / "pando.sock", "--http=", "--pool-pages=2")
        assert refused.returncode == 1
        assert f"{precious} exists and is not a socket" in (
            refused.stdout + refused.stderr
        )
        assert precious.read_text() == "precious"
        precious.unlink()


def test_the_sockets_are_for_owner_and_group_only(start_pandod):
    pandod = start_pandod()
    for path in (pandod.socket, pandod.memory_socket):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


def listening_ports(pid: int) -> int:
    """Returns the number of TCP sockets of the process that listen."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(fd.readlink())
        # The descriptor is closed; no listener closes while pandod runs.
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    tables = [Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6")]
    rows = [
        row.split() for table in tables for row in table.read_text().splitlines()[1:]
    ]
    return sum(row[3] == "0A" and row[9] in inodes for row in rows)


def test_tcp_is_off_unless_asked_for(start_pandod):
    assert listening_ports(start_pandod().pid) == 0


def test_tcp_serves_the_same_cache_as_the_socket(start_pandod):
    tcp = free_address()
    pandod = start_pandod(tcp=tcp, tcp_insecure="yes")
    with Client(tcp) as far, Client(pandod.address) as near:
        far.insert(TOKENS, far.allocate_pages(2))
        assert near.match_prefix(TOKENS).matched_tokens == len(TOKENS)
        assert near.stats().sessions == 2


# The standard services and probes.


def test_the_standard_health_service_answers_for_server_and_services(start_pandod):
    with RawCalls(start_pandod().address) as raw:
        assert raw.unary(HEALTH) == SERVING
        name = b"pando.v1.PrefixCache"
        assert raw.unary(HEALTH, b"\x0a" + bytes([len(name)]) + name) == SERVING
        assert raw.failure(HEALTH, b"\x0a\x04none") == ("NOT_FOUND", "NOT_FOUND")


def test_reflection_lists_the_services(start_pandod):
    list_services = b"\x3a\x01*"
    with grpc.insecure_channel(start_pandod().address) as channel:
        method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        call = channel.stream_stream(method)
        [answer] = call(iter([list_services]), timeout=30)
    for service in ("PrefixCache", "PagePool", "Sessions", "Admin"):
        assert f"pando.v1.{service}".encode() in answer
    assert b"grpc.health.v1.Health" in answer


def test_http_answers_probes_and_nothing_else(start_pandod):
    http = free_address()
    start_pandod(http=http)
    assert get(http, "/healthz") == (200, "ok\n")
    assert get(http, "/readyz") == (200, "ok\n")
    assert get(http, "/etc/passwd")[0] == 404


# The end of pandod.


def test_a_drain_lets_running_requests_finish_and_admits_no_others(start_pandod):
    http = free_address()
    pandod = start_pandod(http=http, drain_timeout="1h")
    with Client(pandod.address) as client, RawCalls(pandod.address) as raw:
        match = client.match_prefix(TOKENS, lock=True, reserve_tokens=len(TOKENS))

        pandod.terminate()

        eventually(lambda: client.draining)
        assert get(http, "/readyz") == (503, "not ready\n")
        assert get(http, "/healthz")[0] == 200
        assert raw.unary(HEALTH) == NOT_SERVING
        with pytest.raises(UnavailableError) as refused:
            client.match_prefix(TOKENS, lock=True)
        assert refused.value.reason == "DRAINING"
        with pytest.raises(UnavailableError, match="DRAINING"):
            Client(pandod.address, timeout=0.5)
        assert client.match_prefix(TOKENS).matched_tokens == 0
        assert pandod.running

        client.insert(TOKENS, match.reserved_page_ids, lock=match.lock, unlock=True)
        assert pandod.wait() == 0
    assert not pandod.socket.exists()
    assert not pandod.memory_socket.exists()


def test_a_pandod_that_was_stopped_takes_its_signals_when_it_goes_on(start_pandod):
    pandod = start_pandod()
    for sent in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):
        os.kill(pandod.pid, sent)
    assert pandod.wait() == 0


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_that_comes_while_it_starts_does_not_end_it(tmp_path, sent):
    class Signalled(Pandod):
        def _wait_serving(self) -> None:
            # This is before pandod first reads its options, and long before it serves.
            eventually(lambda: blocked_signals(self.pid) >> (sent - 1) & 1)
            assert "pandod serves" not in self.log()
            os.kill(self.pid, sent)
            super()._wait_serving()

    pandod = Signalled(tmp_path)
    pandod.start()
    assert pandod.stop() == 0


def blocked_signals(pid: int) -> int:
    """Returns a bit for each signal; the lowest bit stands for signal 1."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            return int(line.split()[1], 16)
    raise AssertionError("no SigBlk")


def test_an_idle_pandod_ends_at_once(start_pandod):
    pandod = start_pandod(drain_timeout="1h")
    with Client(pandod.address) as client:
        client.insert(TOKENS, client.allocate_pages(2))
        assert pandod.stop() == 0
    assert not pandod.socket.exists()


def test_a_second_signal_ends_a_drain_at_once(start_pandod):
    pandod = start_pandod(drain_timeout="1h")
    with Client(pandod.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        pandod.terminate()
        eventually(lambda: client.draining)
        assert pandod.stop() == 0
        assert not pandod.socket.exists() and not pandod.memory_socket.exists()
        assert lock.held


def test_a_drain_ends_when_its_time_is_up(start_pandod):
    pandod = start_pandod(drain_timeout="300ms")
    with Client(pandod.address) as client:
        lock = client.match_prefix(TOKENS, lock=True).lock
        assert pandod.stop() == 0
        assert lock.held


def test_a_limit_of_file_sizes_gets_a_sentence(tmp_path):
    limited = subprocess.run(
        [
            *("prlimit", "--fsize=100000", binary()),
            *(f"--socket={tmp_path}/pando.sock", "--pool-pages=64"),
        ],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert limited.returncode == 1
    assert "cannot be larger than `ulimit -f` allows" in limited.stderr
    assert "cannot size a shard" in limited.stderr
