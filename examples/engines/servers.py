"""Starts HTTP servers, each on a port of this machine: a pandod and engines over it
with `pando up` and `pando run`, and engines by themselves."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kinds import Kind
from pando_package import command, put_into
from pandod_process import binary, clean_environment

# The limit is long, because engines start slowly when many share the cores.
START_SECONDS = 1200
ANSWER_SECONDS = 300
END_SECONDS = 60
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    tokens: list[int]
    cached: int
    seconds: float


@dataclass
class Process:
    """A process that runs one engine, or several, and the log with their output."""

    running: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")


class Engine:
    """An engine that serves at a port of this machine."""

    def __init__(self, kind: Kind, process: Process, port: int) -> None:
        self._kind = kind
        self._process = process
        self._port = port

    def wait_until_healthy(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_healthy():
            has_ended = self._process.running.poll() is not None
            if has_ended or time.monotonic() > deadline:
                said = self._process.text()[-4000:]
                sys.exit(f"{said}\nThe engine at port {self._port} does not serve.")
            time.sleep(1)

    def first_lines(self, count: int) -> str:
        """Returns the first lines that the engine's process has written."""
        return "\n".join(self._process.text().splitlines()[:count])

    def ask(self, prompt: list[int], new: int) -> Answer:
        begin = time.perf_counter()
        request = json.dumps(self._kind.request(prompt, new))
        status, said = self._call("POST", self._kind.path, request)
        seconds = time.perf_counter() - begin
        if status != 200:
            sys.exit(f"the engine at port {self._port} answers {status}: {said!r}")
        return Answer(*self._kind.read(json.loads(said)), seconds)

    def _is_healthy(self) -> bool:
        try:
            return self._call("GET", "/health")[0] == 200
        except OSError:
            return False

    def _call(self, method: str, path: str, body: str = "") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(HOST, self._port, ANSWER_SECONDS)
        with contextlib.closing(connection):
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


class Servers:
    """A folder in which servers of one kind run and keep their logs."""

    def __init__(self, kind: Kind, model: Path, folder: Path) -> None:
        self._kind = kind
        self._engine = kind.command(model)
        self._folder = folder
        self._address = f"unix:{folder}/pando.sock"
        site = folder / "site"
        put_into(site)
        # An engine's programs lie beside its Python.
        added = {"PYTHONPATH": site, "PATH": Path(sys.executable).parent}
        self._environment = clean_environment() | kind.environment()
        self._environment["TMPDIR"] = str(folder)
        for name, first in added.items():
            self._environment[name] = f"{first}{os.pathsep}{os.environ[name]}"

    @contextlib.contextmanager
    def pandod(self, pool_bytes: str) -> Iterator[None]:
        """Runs a pandod with an open pool: the first engine sends the layout of the
        pages."""
        up = ["up", f"--socket={self._folder}/pando.sock", "--http="]
        up += [f"--pool-bytes={pool_bytes}", f"--page-tokens={self._kind.page_tokens}"]
        _show("pando", *up)
        subprocess.run(command(*up), env=self._environment, check=True)
        try:
            yield
        finally:
            control = binary().with_name("pandoctl")
            end = [control, "--address", self._address, "drain", "--exit", "--yes"]
            subprocess.run(end, stdout=subprocess.DEVNULL, check=True)

    @contextlib.contextmanager
    def sharing(self, count: int, port: int) -> Iterator[list[Engine]]:
        """Runs engines on the pool of the pandod, at ports from `port` on."""
        run = ["run", "-n", str(count), "--address", self._address, "--"]
        run += [*self._engine, "--port", str(port)]
        _show("pando", *run)
        with self._running(command(*run), "sharing") as process:
            yield [Engine(self._kind, process, port + n) for n in range(count)]

    @contextlib.contextmanager
    def alone(self, port: int) -> Iterator[Engine]:
        """Runs an engine with its own cache."""
        engine = [*self._engine, *self._kind.own_cache.split(), "--port", str(port)]
        _show(*engine)
        with self._running(engine, "alone") as process:
            yield Engine(self._kind, process, port)

    @contextlib.contextmanager
    def _running(self, words: list[str], name: str) -> Iterator[Process]:
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            running = subprocess.Popen(
                words,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield Process(running, log)
        finally:
            running.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(END_SECONDS)
            # The process may have left other processes in its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def _show(*words: str) -> None:
    print(f"\n$ {shlex.join(words)}", flush=True)
