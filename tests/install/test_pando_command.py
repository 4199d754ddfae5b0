"""`pando up` and `pando run`, from pando_server's sources and the built programs."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kept_pandod import call_until_answered, children_of
from metrics_page import free_address, get
from pando_kv import Client
from pando_package import command, put_into
from pandod_process import binary, clean_environment

POOL = ("--pool-pages=11", "--layers=1", "--page-tokens=16", "--log-level=error")
# A stand-in for an engine, which prints how it was called and runs until a signal.
ENGINE = f"""#!{sys.executable}
import json, os, signal, sys
names = ("PANDO_ADDRESS", "PANDO_MODEL")
said = json.dumps([sys.argv[1:], {{n: os.environ.get(n) for n in names}}])
os.write(1, f"{{said}}\\n".encode())  # at once, as several engines have one output
if "--fail" in sys.argv:
    sys.exit(7)
signal.pause()
"""
Pando = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    put_into(folder)
    for name in ("sglang", "vllm"):
        engine = folder / name
        engine.write_text(ENGINE)
        engine.chmod(0o755)
    return folder


def environment(site: Path, **more: str) -> dict[str, str]:
    path = f"{site}{os.pathsep}{os.environ['PATH']}"
    return clean_environment() | {"PYTHONPATH": str(site), "PATH": path} | more


@pytest.fixture
def pando(site) -> Pando:
    def call(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            env=environment(site, **more),
            capture_output=True,
            text=True,
            timeout=60,
        )

    return call


@pytest.fixture
def started(pando, tmp_path) -> Iterator[Callable[..., str]]:
    """Returns a function that starts a pandod with `pando up` at the test's socket."""
    processes = []

    def start(*options: str, http: str = "", pool: tuple[str, ...] = POOL) -> str:
        where = (f"--socket={tmp_path}/p.sock", f"--http={http}")
        said = pando("up", *where, *pool, *options, TMPDIR=str(tmp_path))
        assert said.returncode == 0, said.stderr
        processes.append(keeper_in(said.stdout))
        return said.stdout

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def is_running(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def keeper_in(said: str) -> int:
    (process,) = re.findall(r"^keeper: +process (\d+) ", said, re.M)
    return int(process)


def test_up_starts_a_pandod_that_goes_on_and_says_where_it_is(started, tmp_path):
    http = free_address()
    said = started(http=http)
    address = f"unix:{tmp_path}/p.sock"
    assert f"pandod serves at {address}" in said
    (console,) = re.findall(r"^console: (\S+)$", said, re.M)
    assert console == f"http://{http}/console/"
    assert get(http, "/console/")[0] == 200
    (log,) = re.findall(r"^log: +(\S+)$", said, re.M)
    assert Path(log).exists()
    with Client(address) as client:
        assert client.pool.capacity_pages == 11


def test_a_pandod_of_up_that_is_killed_is_back_and_ends_with_its_keeper(
    started, site, tmp_path
):
    keeper = keeper_in(started())
    address = f"unix:{tmp_path}/p.sock"
    with Client(address) as client:
        (server,) = children_of(keeper)
        os.kill(server, signal.SIGKILL)
        eventually(lambda: server not in children_of(keeper))
        call_until_answered(client)
    pandoctl = site / "pando_server" / "bin" / "pandoctl"
    subprocess.run(
        [pandoctl, "--address", address, "drain", "--exit", "--yes"], check=True
    )
    eventually(lambda: not is_running(keeper))
    assert not (tmp_path / "p.sock").exists()


def site_whose_pandod(starts: str, site: Path, folder: Path) -> Path:
    """Makes a copy of `site` whose pandod runs `starts` instead of serving."""
    other = folder / "site"
    shutil.copytree(site, other, symlinks=True)
    pandod = other / "pando_server" / "bin" / "pandod"
    pandod.unlink()
    pandod.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--print-config) exec {binary()} "$@";; esac\n'
        f"{starts}\n"
    )
    pandod.chmod(0o755)
    return other


def test_up_that_is_interrupted_leaves_no_pandod(site, tmp_path):
    started = tmp_path / "started"
    slow = site_whose_pandod(f"echo $$ > {started}; exec sleep 60", site, tmp_path)
    process = subprocess.Popen(
        command("up", f"--socket={tmp_path}/p.sock", "--http=", *POOL),
        env=environment(slow, TMPDIR=str(tmp_path)),
        stderr=subprocess.DEVNULL,
    )
    with process:
        eventually(lambda: started.exists() and started.read_text().strip() != "")
        process.send_signal(signal.SIGINT)
    pandod = int(started.read_text())
    eventually(lambda: not is_running(pandod))


def test_up_says_how_a_pandod_was_killed_that_does_not_start(pando, site, tmp_path):
    dying = site_whose_pandod("kill -SEGV $$", site, tmp_path)
    where = (f"--socket={tmp_path}/p.sock", "--http=")
    said = pando("up", *where, *POOL, TMPDIR=str(tmp_path), PYTHONPATH=str(dying))
    assert said.returncode == 1
    assert re.search(r"has not started: process \d+ .* signal 11 ", said.stderr)


def test_up_starts_no_second_pandod_and_names_the_console_of_the_first(
    started, pando, tmp_path
):
    http = free_address()
    started(http=http)
    again = pando("up", f"--socket={tmp_path}/p.sock", "--http=", *POOL)
    assert again.returncode == 0
    assert "serves already" in again.stdout
    assert f"console: http://{http}/console/\n" in again.stdout


def test_up_says_why_pandod_does_not_start(pando, tmp_path):
    bad = pando("up", "--pool-pages=1")
    assert bad.returncode == 2
    assert "pool-pages is '1'" in bad.stderr
    absent = f"--socket={tmp_path}/absent/p.sock"
    refused = pando("up", absent, "--http=", *POOL, TMPDIR=str(tmp_path))
    assert refused.returncode == 1
    assert "does not exist" in refused.stderr


def calls_of(said: str) -> list[tuple[list[str], dict[str, str]]]:
    return [tuple(json.loads(line)) for line in said.splitlines() if line[:1] == "["]


def run_failing(pando: Pando, tmp_path: Path, *arguments: str) -> tuple[str, list]:
    """Runs an engine that ends at once, which also ends `pando run`.

    Returns the output, and the calls of the engine.
    """
    said = pando("run", "--address", f"unix:{tmp_path}/p.sock", *arguments, "--fail")
    assert said.returncode == 7, said.stderr
    return said.stdout, calls_of(said.stdout)


def test_run_adds_what_sglang_needs_and_prints_it(started, pando, tmp_path):
    started("--model=m")
    said, [(arguments, variables)] = run_failing(
        pando, tmp_path, "--", "sglang", "serve", "--model-path", "m"
    )
    added = ["--radix-cache-backend", "pando", "--page-size", "16"]
    tokens = ["--max-total-tokens", "160"]
    assert arguments == ["serve", "--model-path", "m", "--fail", *added, *tokens]
    address = f"unix:{tmp_path}/p.sock"
    assert variables == {"PANDO_ADDRESS": address, "PANDO_MODEL": "m"}
    assert said.startswith(f"PANDO_ADDRESS={address} PANDO_MODEL=m sglang serve ")


def test_run_adds_what_vllm_needs(started, pando, tmp_path):
    started("--page-bytes=64KiB", "--page-format=a b", "--pool-shards=2")
    _, [(arguments, _)] = run_failing(pando, tmp_path, "--", "vllm", "serve", "m")
    switches = {"--enable-prefix-caching", "--no-async-scheduling"}
    assert switches <= set(arguments)
    words = [word for word in arguments[3:] if word not in switches]
    given = dict(zip(words[::2], words[1::2], strict=True))
    connector = json.loads(given.pop("--kv-transfer-config"))
    assert given == {
        "--block-size": "16",
        "--num-gpu-blocks-override": "11",
        "--tensor-parallel-size": "2",
    }
    assert connector == {
        "kv_connector": "PandoConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"pando_page_format": "a b"},
    }


def test_run_gives_no_size_of_a_pool_that_is_open(started, pando, tmp_path):
    started(pool=("--pool-bytes=8MiB", "--log-level=error"))
    _, [(arguments, _)] = run_failing(pando, tmp_path, "--", "sglang", "serve")
    added = ["--radix-cache-backend", "pando", "--page-size", "16"]
    assert arguments == ["serve", "--fail", *added]
    _, [(arguments, _)] = run_failing(pando, tmp_path, "--", "vllm", "serve", "m")
    assert arguments[arguments.index("--block-size") + 1] == "16"
    assert "--num-gpu-blocks-override" not in arguments


def test_run_puts_engines_on_blocks_where_there_is_no_pool(started, pando, tmp_path):
    """Starts pandod as `pando up` does without options for a pool."""
    started(pool=("--memory=16MiB", "--log-level=error"))
    _, [(arguments, variables)] = run_failing(pando, tmp_path, "--", "vllm", "serve")
    connector = json.loads(arguments[arguments.index("--kv-transfer-config") + 1])
    assert connector["kv_connector"] == "OffloadingConnector"
    spec = connector["kv_connector_extra_config"]
    assert spec["spec_name"] == "PandoOffloadingSpec"
    assert len(arguments) == len(["serve", "--fail", "--kv-transfer-config", spec])
    assert variables["PANDO_ADDRESS"] == f"unix:{tmp_path}/p.sock"
    _, [(arguments, _)] = run_failing(pando, tmp_path, "--", "sglang", "serve")
    flag = "--unified-cache-external-linker"
    linker = json.loads(arguments[arguments.index(f"{flag}-config") + 1])
    assert linker["linker"] == "PandoLinker"
    assert arguments[2:5] == [
        "--enable-unified-cache-external-linker",
        f"{flag}-backend",
        "dynamic",
    ]
    assert "--radix-cache-backend" not in arguments


def test_run_leaves_what_is_given_as_it_is(started, pando, tmp_path):
    started()
    given = ["serve", "--page-size=8", "--max-total-tokens", "96"]
    _, [(arguments, _)] = run_failing(pando, tmp_path, "--", "sglang", *given)
    assert arguments == [*given, "--fail", "--radix-cache-backend", "pando"]


def test_several_engines_have_consecutive_ports_and_end_together(
    started, site, tmp_path
):
    started()
    engine = ["vllm", "serve", "m", "--port", "9000"]
    arguments = ("run", "-n", 2, "--address", f"unix:{tmp_path}/p.sock", "--", *engine)
    with subprocess.Popen(
        command(*arguments), env=environment(site), stdout=subprocess.PIPE, text=True
    ) as running:
        lines = [running.stdout.readline() for _ in range(4)]
        calls = calls_of("".join(lines))
        ports = sorted(a[a.index("--port") + 1] for a, _ in calls)
        assert ports == ["9000", "9001"]
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 128 + signal.SIGTERM


def test_up_says_where_no_console_is(started):
    http = free_address()
    assert "console: off" in started("--console=no", http=http)


def test_up_hands_questions_to_pandod(pando):
    assert pando("up", "--version").stdout.startswith("pandod ")
    checked = pando("up", *POOL, "--check-config")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "Usage: pandod" in pando("up", "--help").stdout


def test_run_says_what_is_wrong_with_a_command(pando):
    missing = pando("run", "--", "vllm", "serve", "m", "--port")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "pando run: --port is ''; must be a number\n"
    assert "usage: pando up" in pando("run", "-n", 0, "--", "vllm").stderr


def test_run_refuses_what_is_no_engine_and_where_no_pandod_answers(pando, tmp_path):
    unknown = pando("run", "--", "nginx")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "'nginx' is no engine; may be sglang or vllm" in unknown.stderr
    nowhere = pando("run", "--address", f"unix:{tmp_path}/no", "--", "vllm", "serve")
    assert nowhere.returncode == 1
    assert "start a pandod first, with `pando up`" in nowhere.stderr
    assert pando("run").returncode == 2
    assert pando().returncode == 0
    assert pando("dance").returncode == 2
