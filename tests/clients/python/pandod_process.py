"""A real pandod process."""

import os
import subprocess
from pathlib import Path

import grpc
import pytest

REPOSITORY = Path(__file__).parents[3]
PAGE_TOKENS = 16
POOL_PAGES = 64
READY_SECONDS = 30


def _binary() -> Path:
    given = os.environ.get("PANDOD")
    path = Path(given) if given else REPOSITORY / "build" / "dev" / "bin" / "pandod"
    if not path.exists():
        if given:
            pytest.fail(f"PANDOD is {path}, which does not exist")
        pytest.skip(f"{path} is not built")
    return path


class Pandod:
    """One pandod process on a Unix socket; kill() and start() make a new epoch."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "pando.sock"
        self.address = f"unix:{self.socket}"
        self._binary = _binary()
        self._log = (folder / "pandod.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        options = {
            "socket": self.socket,
            "http": "",
            "pool-pages": POOL_PAGES,
            "page-tokens": PAGE_TOKENS,
            "layers": 2,
            "heads": 2,
            "head-size": 8,
            "dtype": "float32",
        }
        arguments = [str(x) for name in options for x in (f"--{name}", options[name])]
        self._process = subprocess.Popen(
            [self._binary, *arguments], stdout=self._log, stderr=self._log
        )
        self._wait_serving()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(READY_SECONDS)

    def _wait_serving(self) -> None:
        options = [("grpc.initial_reconnect_backoff_ms", 100)]
        with grpc.insecure_channel(self.address, options) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            answer = check(b"", timeout=READY_SECONDS, wait_for_ready=True)
        assert answer == b"\x08\x01", "the health service does not say SERVING"

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._log.close()
