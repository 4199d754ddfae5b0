"""Runs pandod for as long as the demo lasts."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

CONSOLE_PORT = 9464
START_SECONDS = 30
STOP_SECONDS = 10


def console_address() -> str:
    """Returns the default address of --http, or one with a free port if that is taken.
    Raises SystemExit if no port is free."""
    for port in (CONSOLE_PORT, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return f"127.0.0.1:{probe.getsockname()[1]}"
    raise SystemExit("no port of 127.0.0.1 is free")


@contextlib.contextmanager
def running_pandod(
    binary: Path, folder: Path, http: str, options: Mapping[str, object]
) -> Iterator[str]:
    """Yields the address of a pandod whose socket and log lie in `folder`."""
    socket_path = folder / "pando.sock"
    command = [binary, "--socket", socket_path, "--http", http]
    for name, value in options.items():
        command += [name, str(value)]
    log = folder / "pandod.log"
    # pandod gets a process group of its own, because an interrupt at the terminal is
    # for the driver alone, which stops pandod last.
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, process_group=0
        ) as process,
    ):
        try:
            _await_socket(process, socket_path, log)
            yield f"unix:{socket_path}"
        finally:
            _stop(process)
    if process.returncode != 0:
        raise SystemExit(
            f"pandod ended with code {process.returncode}:\n{log.read_text()}"
        )


def _await_socket(process: subprocess.Popen[bytes], path: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
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
