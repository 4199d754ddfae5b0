"""A real pando-mover process."""

import os
import re
import signal
import subprocess
from pathlib import Path

from eventually import eventually
from pandod_process import binary


class MoverProcess:
    """The pando-mover of a device; its process runs from start() on."""

    def __init__(self, socket: Path, log: Path, device: str = "host") -> None:
        self._command = [
            *(binary().with_name("pando-mover"), "--socket", socket),
            *("--device", device),
        ]
        self._log_path = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **environment: str) -> None:
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=os.environ | environment, stderr=log
            )

    def start_and_copy(self, **environment: str) -> None:
        """Starts the process, and returns when it logs that it copies for a pandod."""
        before = self.welcomes()
        self.start(**environment)
        eventually(lambda: self.welcomes() > before)

    def welcomes(self) -> int:
        """Returns how often the mover began to copy for a pandod."""
        return len(re.findall("copies \\d+ shards of", self.log()))

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait()

    def wait(self) -> int:
        return self._process.wait()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return self._log_path.read_text() if self._log_path.exists() else ""

    def close(self) -> None:
        if self.running:
            self.kill()
