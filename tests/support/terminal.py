"""A program on a terminal, as a person sees it."""

import os
import pty
import subprocess

_LIMIT_SECONDS = 60


class Terminal:
    """A program whose stdin, stdout and stderr are one terminal, for a `with` block."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._terminal, inner = pty.openpty()
        self._process = subprocess.Popen(
            command, env=environment, stdin=inner, stdout=inner, stderr=inner
        )
        os.close(inner)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, text: str) -> None:
        """Reads until the text appears after the text that was read before."""
        begin = len(self.seen)
        while text not in self.seen[begin:]:
            self._read()

    def read_to_end(self) -> int:
        """Reads until the program ends; returns its exit status."""
        try:
            while True:
                self._read()
        # The read fails once no process has the other end open.
        except OSError:
            return self._process.wait(_LIMIT_SECONDS)

    def _read(self) -> None:
        self.seen += os.read(self._terminal, 65536).decode()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)
