"""A real pandod process."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE_TOKENS = 16
POOL_PAGES = 64
READY_SECONDS = 30
# Options of a pool whose layout stays open, to use together with pool_bytes.
OPEN = dict.fromkeys(
    ("pool_pages", "page_tokens", "layers", "heads", "head_size", "dtype")
)
SERVING = b"\x08\x01"


def binary() -> Path:
    given = os.environ.get("PANDOD")
    path = Path(given) if given else REPOSITORY / "build" / "dev" / "bin" / "pandod"
    if not path.exists():
        if given:
            pytest.fail(f"PANDOD is {path}, which does not exist")
        pytest.skip(f"{path} is not built")
    return path


def clean_environment() -> dict[str, str]:
    """Returns the environment without the variables that pandod takes for options."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PANDO_")}


class Pandod:
    """One pandod process on a Unix socket; kill() and start() make a new epoch."""

    def __init__(self, folder: Path, **options: object) -> None:
        """Takes pandod's `options`, with underscores; the value None leaves one out."""
        self.socket = folder / "pando.sock"
        self.memory_socket = folder / "memory.sock"
        self.address = f"unix:{self.socket}"
        self._options: dict[str, object] = {
            "socket": self.socket,
            "http": "",
            "pool_pages": POOL_PAGES,
            "page_tokens": PAGE_TOKENS,
            "layers": 2,
            "heads": 2,
            "head_size": 8,
            "dtype": "float32",
        } | options
        self._binary = binary()
        self._log_path = folder / "pandod.log"
        self._log = self._log_path.open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> None:
        self._process = subprocess.Popen(
            self._command(),
            env=clean_environment() | environment,
            stdout=self._log,
            stderr=self._log,
        )
        self._wait_serving()

    def _command(self) -> list[Path | str]:
        return [self._binary, *self._arguments()]

    def _arguments(self) -> list[str]:
        return [
            text
            for name, value in self._options.items()
            if value is not None
            for text in (f"--{name.replace('_', '-')}", str(value))
        ]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self) -> int:
        return self._process.wait(READY_SECONDS)

    def stop(self) -> int:
        self.terminate()
        return self.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return self._log_path.read_text()

    def events(self) -> list[dict[str, Any]]:
        """Returns the complete lines of the log."""
        whole_lines, _, _ = self.log().rpartition("\n")
        return [json.loads(line) for line in whole_lines.splitlines()]

    def _wait_serving(self) -> None:
        options = [("grpc.initial_reconnect_backoff_ms", 100)]
        with grpc.insecure_channel(self.address, options) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            answer = self._while_running(
                check.future(b"", timeout=READY_SECONDS, wait_for_ready=True)
            )
        assert answer == SERVING, "the health service does not say SERVING"

    def _while_running(self, answer: grpc.Future) -> bytes:
        while True:
            with contextlib.suppress(grpc.FutureTimeoutError):
                return answer.result(timeout=0.1)
            if not self.running:
                answer.cancel()
                pytest.fail(f"pandod ended as it started: {self.log()}")

    def close(self) -> None:
        if self.running:
            self.kill()
        self._log.close()

    def close_in_order(self) -> None:
        """Stops the process; fails if it crashed or reports an error as it ends."""
        try:
            code = self.stop() if self.running else self._process.returncode
            assert code in (0, -signal.SIGKILL), f"ended with {code}: {self.log()}"
        finally:
            self.close()


def refused_start(folder: Path, *arguments: str, **environment: str) -> str:
    """Returns the output of a pandod that cannot start with these options."""
    refused = subprocess.run(
        [binary(), f"--socket={folder}/pando.sock", "--http=", *arguments],
        env=clean_environment() | environment,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
    )
    assert refused.returncode != 0
    return refused.stdout + refused.stderr


@contextlib.contextmanager
def serving(folder: Path, **options: object) -> Iterator[Pandod]:
    """Runs a pandod that is stopped at the end without waiting for its workers."""
    server = Pandod(folder, **({"drain_timeout": "0s"} | options))
    server.start()
    try:
        yield server
    finally:
        server.close_in_order()
