"""The real pandoctl, on pipes or on a terminal."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandod_process import binary, clean_environment
from terminal import Terminal

_LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Pandoctl:
    """Calls of pandoctl to one pandod, which PANDO_ADDRESS names."""

    def __init__(self, address: str, run_by: Sequence[str] = ()) -> None:
        """Sets the pandod up; `run_by` is a command that runs pandoctl."""
        self._run_by = run_by
        self.program: Path = binary().with_name("pandoctl")
        self.environment = clean_environment() | {"PANDO_ADDRESS": address}

    def __call__(self, *arguments: object, stdin: str = "") -> Answer:
        done = subprocess.run(
            self._command(arguments),
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        """Starts pandoctl and returns the process, whose stdout can be read."""
        return subprocess.Popen(
            self._command(arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def on_terminal(self, *arguments: object, typed: str = "") -> Answer:
        """Runs pandoctl on a terminal, and types `typed`.

        Returns the text that a person sees as `out`, which has both stdout and stderr.
        """
        with Terminal(self._command(arguments), self.environment) as terminal:
            terminal.type(typed)
            code = terminal.read_to_end()
            return Answer(code, terminal.seen, "")

    def _command(self, arguments: tuple[object, ...]) -> list[str]:
        return [*self._run_by, str(self.program), *map(str, arguments)]
