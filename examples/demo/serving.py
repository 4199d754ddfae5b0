"""Processes that answer requests from a pipe, and the driver's end of that pipe."""

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

from generation import Answer
from workload import Request


def serve(requests: Connection, answer: Callable[[Request], Answer]) -> None:
    """Answers requests until the driver closes the pipe; runs in the other process."""
    requests.send("ready")
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        requests.send(answer(request))


class Server:
    """The driver's handle on a process whose `target` ends in a call of `serve`."""

    def __init__(
        self, title: str, target: Callable[..., None], *arguments: object
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._title = title
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=target, args=(theirs, *arguments), daemon=True
        )
        # An interrupt at the terminal reaches every process, but only the driver must
        # act on it. A process inherits ignored signals from the process that starts it.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._process.start()
        signal.signal(signal.SIGINT, handler)
        theirs.close()

    def await_ready(self) -> None:
        self._receive()

    def answer(self, request: Request) -> Answer:
        # Writing fails only after the process has ended, which the read below reports.
        with contextlib.suppress(BrokenPipeError):
            self._pipe.send(request)
        return self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._pipe.close()
        if error is not None:
            # The process may still compute a request whose answer the driver does not
            # await.
            self._process.terminate()
        self._process.join()

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode
            raise SystemExit(f"{self._title} ended with code {code}") from None
