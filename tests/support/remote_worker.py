"""A worker in a process of its own that makes the calls a test tells it to make.

The process has mapped the pool, so pandod sees its death at once.

usage of the program: remote_worker.py ADDRESS

The program prints its session id. It then answers each line "METHOD REQUEST" with "ok
ANSWER" or "failed CODE REASON"; the messages are in hexadecimal.
"""

import contextlib
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import Message
from pando_kv import Client
from protocol_worker import ProtocolWorker
from raw_calls import RawCalls, RunningCall


class RemoteCall:
    """One call of another process, which makes one call at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answer(self) -> bytes:
        kind, *words = self._words()
        assert kind == "ok", words
        return bytes.fromhex("".join(words))

    def failure(self) -> tuple[str, str]:
        kind, *words = self._words()
        assert kind == "failed", "the call succeeded"
        code, reason = words
        return code, reason

    def is_done(self) -> bool:
        readable, _, _ = select.select([self._process.stdout], [], [], 0)
        return bool(readable)

    def _words(self) -> list[str]:
        line = self._process.stdout.readline()
        assert line, "the worker has ended"
        return line.split()


class RemoteCalls:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, method: str, request: Message) -> RemoteCall:
        words = f"{method} {request.SerializeToString().hex()}\n"
        self._process.stdin.write(words)
        self._process.stdin.flush()
        return RemoteCall(self._process)


class RemoteWorker(ProtocolWorker):
    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(RemoteCalls(process), int(process.stdout.readline()))
        self._process = process

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def remote_worker(address: str) -> Iterator[RemoteWorker]:
    with subprocess.Popen(
        [sys.executable, Path(__file__), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        worker = RemoteWorker(process)
        try:
            yield worker
        finally:
            worker.kill()


def main() -> None:
    address = sys.argv[1]
    with Client(address) as client, client.attach_pool(), RawCalls(address) as raw:
        print(client.session_id, flush=True)
        for line in sys.stdin:
            method, _, request = line.strip().partition(" ")
            call = raw.start(method, bytes.fromhex(request))
            print(*outcome(call), flush=True)


def outcome(call: RunningCall) -> tuple[str, ...]:
    if call.has_failed():
        return ("failed", *call.failure())
    return ("ok", call.answer().hex())


if __name__ == "__main__":
    main()
