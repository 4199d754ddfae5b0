"""One worker of the soak, which makes random requests until it is stopped.

Every page that the worker reads must show the mark of its prompt, and no other worker
may write to a page that it reserved. The worker writes its progress and the errors of
its calls to a file, one JSON object per line. After a violation it ends with a
traceback.

usage: python -m soak.worker SOCKET SEED REPORT
SIGTERM: finishes its request and closes its session. SIGUSR1: cuts its connections.
SIGUSR2: does that, then stops itself (SIGSTOP).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from pando_kv import Client, PandoError, PoolExhaustedError, SessionLostError
from soak.connections import cut_connections
from soak.requests import Requests

PROGRESS_SECONDS = 0.5
# The pause after an error, during which pandod may be away.
PAUSE_SECONDS = 0.05
# The timeout is far longer than any disturbance delays a call.
CALL_SECONDS = 60


class Worker:
    def __init__(self, socket: str, seed: int, report: Path) -> None:
        self._socket = socket
        self._name = f"soak {seed}"
        self._random = np.random.default_rng(seed)
        self._report = report.open("a", buffering=1)
        self._stopping = False
        self._finished = 0
        self._refused = 0
        self._checked_pages = 0
        self._progress_told = 0.0

    def install_signals(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        signal.signal(signal.SIGUSR1, lambda *_: cut_connections(self._socket))
        signal.signal(signal.SIGUSR2, lambda *_: self._cut_and_stop())

    def run(self) -> None:
        self._tell_progress()
        while not self._stopping:
            began = time.monotonic()
            try:
                with Client(
                    f"unix:{self._socket}", name=self._name, timeout=CALL_SECONDS
                ) as client:
                    self._serve(client)
            except PandoError as error:
                self._tell_error(error, began)
        self._tell_progress()

    def _serve(self, client: Client) -> None:
        """Makes requests until the worker stops, or a failed call leaves pages held."""
        requests = None
        while not self._stopping and not (requests and requests.holds_something):
            began = time.monotonic()
            try:
                if requests is None or requests.generation != client.generation:
                    requests = Requests(client, self._random)
                self._request(requests)
            except PoolExhaustedError:
                self._refused += 1
            except SessionLostError as error:
                requests = None
                self._tell_error(error, began)
            except PandoError as error:
                self._tell_error(error, began)
            if time.monotonic() > self._progress_told + PROGRESS_SECONDS:
                self._tell_progress()

    def _request(self, requests: Requests) -> None:
        checked_before = requests.checked_pages
        requests.one()
        self._finished += 1
        self._checked_pages += requests.checked_pages - checked_before

    def _tell_progress(self) -> None:
        self._progress_told = time.monotonic()
        self._tell(
            finished=self._finished,
            refused=self._refused,
            checked_pages=self._checked_pages,
        )

    def _tell_error(self, error: PandoError, began: float) -> None:
        self._tell(error=error.reason, message=error.message, began=began)
        time.sleep(PAUSE_SECONDS)

    def _tell(self, **what: object) -> None:
        self._report.write(json.dumps({"at": time.monotonic(), **what}) + "\n")

    def _stop(self) -> None:
        self._stopping = True

    def _cut_and_stop(self) -> None:
        cut_connections(self._socket)
        os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    socket, seed, report = sys.argv[1:]
    worker = Worker(socket, int(seed), Path(report))
    worker.install_signals()
    worker.run()


if __name__ == "__main__":
    main()
