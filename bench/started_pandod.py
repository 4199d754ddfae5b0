"""Starts a pandod whose calls are measured."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# The smallest layout, for benchmarks that read and write no KV.
SMALLEST_LAYOUT = ("--layers", 1, "--heads", 1, "--head-size", 1)
SMALLEST_LAYOUT += ("--dtype", "float8_e4m3")


@contextlib.contextmanager
def started_pandod(
    build: Path,
    *options: object,
    http: str = "",
    cpu: int | None = None,
    keeper: bool = False,
) -> Iterator[tuple[str, int]]:
    """Yields the address and the process id of a pandod with these options. If `cpu` is
    given, pandod runs on that CPU only. With `keeper`, the process is its keeper."""
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as folder:
        socket = Path(folder) / "pando.sock"
        command = [build / "bin/pandod", "--socket", socket, "--http", http]
        command += ["--log-level", "error", *options]
        if keeper:
            command = [build / "bin/pando-keeper", *command]
        if cpu is not None:
            command = ["taskset", "--cpu-list", cpu, *command]
        process = subprocess.Popen(list(map(str, command)))
        try:
            while not socket.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"pandod ended with {process.returncode}")
                time.sleep(0.01)
            yield f"unix:{socket}", process.pid
        finally:
            process.terminate()
            process.wait()
