"""Processes that answer requests from a pipe, and the driver's end of the pipe."""

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

from generation import Answer
from workload import Request


def serve(requests: Connection, answer: Callable[[Request], Answer]) -> None:
    """Runs in the process: answers until the driver closes the pipe."""
    requests.send("ready")
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        requests.send(answer(request))


class Server:
    """The driver's handle on a process whose `target` ends in `serve`."""

    def __init__(
        self, title: str, target: Callable[..., None], *arguments: object
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._title = title
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=target, args=(theirs, *arguments), daemon=True
        )
        # An interrupt at the terminal reaches every process, but it is for the driver:
        # what is ignored here stays ignored there.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._process.start()
        signal.signal(signal.SIGINT, handler)
        theirs.close()

    def await_ready(self) -> None:
        self._receive()

    def answer(self, request: Request) -> Answer:
        # Only a process that ended cannot be written to, and that is told on reading.
        with contextlib.suppress(BrokenPipeError):
            self._pipe.send(request)
        return self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._pipe.close()
        if error is not None:
            # It may be in the middle of a request whose answer is not awaited.
            self._process.terminate()
        self._process.join()

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            raise SystemExit(f"{self._title} ended with code {code}") from None
