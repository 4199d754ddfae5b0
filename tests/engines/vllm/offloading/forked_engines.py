"""Engines as forks of one process that has imported vLLM. The import takes half a
minute of a core."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))
from engines.engine_process import ANSWER, START_SECONDS, EngineProcess

STEP_SECONDS = 300


class EngineForks(EngineProcess):
    """The process that forks the engines. It is used from one thread."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Path(__file__), {}, folder / "forks.log")
        self._folder = folder

    def start(self, name: str, **arguments: Any) -> ForkedEngine:
        """Forks an engine that runs engine.py with `arguments`; waits for its start."""
        path, log = self._folder / f"{name}.sock", self._folder / f"{name}.log"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            told = {"socket": str(path), "log": str(log), "arguments": arguments}
            self.ask(**told)
            listener.settimeout(START_SECONDS)
            connection, _ = listener.accept()
        path.unlink()
        return ForkedEngine(connection, log)


class ForkedEngine:
    """A forked engine, which takes the same commands as an EngineProcess."""

    def __init__(self, connection: socket.socket, log: Path) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._log = log
        self.ready = self._answer(START_SECONDS)

    def ask(self, **command: Any) -> dict[str, Any]:
        self._connection.sendall(json.dumps(command).encode() + b"\n")
        return self._answer(STEP_SECONDS)

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """Ends the engine."""
        self._connection.shutdown(socket.SHUT_WR)
        for _ in self._lines:
            pass
        self._lines.close()
        self._connection.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        self._connection.settimeout(seconds)
        for line in self._lines:
            if line.startswith(ANSWER.encode()):
                return json.loads(line[len(ANSWER) :])
            with self._log.open("ab") as log:
                log.write(line)
        raise AssertionError(f"the engine died:\n{self.log()[-6000:]}")


@contextlib.contextmanager
def forks_in(folder: Path) -> Iterator[EngineForks]:
    forks = EngineForks(folder)
    try:
        yield forks
        forks.close()
    finally:
        if forks.process.poll() is None:
            forks.kill()


def main() -> None:
    import vllm  # noqa: F401
    import vllm.v1.engine.llm_engine  # noqa: F401
    from engines.vllm import engine

    print(ANSWER + "{}", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if os.fork() == 0:
            become(told, engine)
            return
        print(ANSWER + "{}", flush=True)


def become(told: dict[str, Any], engine: Any) -> None:
    """Runs an engine in this process, with commands from the socket in `told`."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(told["socket"])
    log = os.open(told["log"], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for descriptor, source in ((0, connection), (1, connection), (2, log)):
        os.dup2(source if isinstance(source, int) else source.fileno(), descriptor)
    connection.close()
    sys.stdin = open(0, closefd=False)
    try:
        engine.run(told["arguments"])
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
