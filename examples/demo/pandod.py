"""Runs pandod for as long as the demo lasts."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from backend import kv_dtype
from model import ModelConfig

POOL_PAGES = 1024
START_SECONDS = 30
STOP_SECONDS = 10


@contextlib.contextmanager
def running_pandod(binary: Path, folder: Path, config: ModelConfig) -> Iterator[str]:
    """Yields the address of a pandod whose socket and log lie in `folder`."""
    socket = folder / "pando.sock"
    command = [
        binary,
        *("--socket", socket),
        *("--http", ""),
        *("--model", config.name),
        *("--pool-pages", str(POOL_PAGES)),
        *("--page-tokens", str(config.page_tokens)),
        *("--layers", str(config.layers)),
        *("--heads", str(config.kv_heads)),
        *("--head-size", str(config.head_size)),
        *("--dtype", kv_dtype(config).value),
        *("--pool-memory", "cuda" if config.device == "cuda" else "host"),
    ]
    log = folder / "pandod.log"
    # A group of its own: an interrupt at the terminal is for the driver alone, which
    # stops pandod last.
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, process_group=0
        ) as process,
    ):
        try:
            _await_socket(process, socket, log)
            yield f"unix:{socket}"
        finally:
            _stop(process)
    if process.returncode != 0:
        raise SystemExit(
            f"pandod ended with code {process.returncode}:\n{log.read_text()}"
        )


def _await_socket(process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not socket.exists():
        if process.poll() is not None:
            raise SystemExit(
                f"pandod ended with code {process.returncode}:\n{log.read_text()}"
            )
        if time.monotonic() > deadline:
            raise SystemExit(
                f"pandod has no socket after {START_SECONDS} s:\n{log.read_text()}"
            )
        time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
