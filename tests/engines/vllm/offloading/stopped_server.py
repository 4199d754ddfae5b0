"""A pandod that a test stops and continues."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from eventually import eventually
from pandod_process import Pandod


class StoppableServer:
    def __init__(self, pandod: Pandod) -> None:
        self.pandod = pandod
        self.is_stopped = False

    def stop(self) -> None:
        """Stops pandod, and returns when all of its threads are stopped."""
        os.kill(self.pandod.pid, signal.SIGSTOP)
        eventually(lambda: self._states() == {"T"})
        self.is_stopped = True

    def kill(self) -> None:
        self.pandod.kill()
        self.is_stopped = False

    def restart(self) -> None:
        self.kill()
        self.pandod.start()

    def go_on(self) -> None:
        """Continues a stopped pandod, or starts a killed one."""
        if not self.pandod.running:
            self.pandod.start()
        elif self.is_stopped:
            os.kill(self.pandod.pid, signal.SIGCONT)
        self.is_stopped = False

    def _states(self) -> set[str]:
        tasks = Path(f"/proc/{self.pandod.pid}/task").glob("*/stat")
        return {task.read_text().rpartition(")")[2].split()[0] for task in tasks}
