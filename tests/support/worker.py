"""A worker process that does one step of a request for each line it reads.

The process answers each line with a line of JSON: what it holds, or the reason of the
error. Between two steps it waits, so a test can kill it at a known point.

usage: worker.py ADDRESS FIRST_TOKEN
"""

import json
import os
import sys
import threading
from itertools import count

import numpy as np
from pando_kv import Client, PandoError, Session
from worker_process import CHUNK_PAGES, PROMPT_PAGES, prompt


class Worker:
    def __init__(self, address: str, first_token: int) -> None:
        self.lost: list[Session] = []
        self.client = Client(address, name="worker", on_session_lost=self.lost.append)
        self.tokens = prompt(self.client.pool.layout.page_tokens, first_token)
        self.page_tokens = self.client.pool.layout.page_tokens
        self.session_id = self.client.session_id
        self.pool = None
        self.held = None
        self.matched_pages = 0
        self.pages: list[int] = []
        self.child = 0
        self._stop_writing = threading.Event()
        self._writer = threading.Thread(target=self._write_on, daemon=True)
        self.churn = None

    def attach(self) -> None:
        self.pool = self.client.attach_pool()

    def lock(self) -> None:
        match = self.client.match_prefix(self.tokens, lock=True)
        self.held, self.matched_pages = match.lock, match.page_ids.size

    def reserve(self) -> None:
        count = PROMPT_PAGES - self.matched_pages
        self.pages = self.client.allocate_pages(count).tolist()

    def write(self) -> None:
        """Starts to write to the reserved pages, until the worker publishes them."""
        self._writer.start()

    def fork(self) -> None:
        """Starts a child process that writes for ever, even after its parent ends."""
        self.child = os.fork()
        while self.child == 0:
            for page in self.pages:
                self._fill(page, 0.25)

    def insert(self) -> None:
        """Publishes one chunk, which the lock then protects."""
        self._publish(CHUNK_PAGES, relock=True)

    def finish(self) -> None:
        """Publishes the rest and frees the last page, which is left over."""
        left_over = self.pages[-1:]
        self._publish(len(self.pages) - 1, unlock=True, free_page_ids=left_over)
        self.pages = []

    def churn_on(self) -> None:
        """Starts a thread that makes requests, whether they succeed or fail."""
        self.churn = Churn(self.client)

    def end_lost_session(self) -> None:
        """Ends the lost session, to whose pages this worker no longer writes."""
        self.client.end_session(self.lost.pop())

    def status(self) -> None:
        """Does nothing, so that the worker answers with what it holds."""

    def answer(self) -> dict:
        return {
            "session_id": self.session_id,
            "generation": self.client.generation,
            "lock_id": self.held.lock_id if self.held else 0,
            "pages": self.pages,
            "child": self.child,
            "churn": self.churn.answer() if self.churn else None,
        }

    def _publish(self, pages: int, **how) -> None:
        if self._writer.is_alive():
            self._stop_writing.set()
            self._writer.join()
        now, self.pages = self.pages[:pages], self.pages[pages:]
        for page in now:
            self._fill(page, page)
        begin = self.matched_pages * self.page_tokens
        end = begin + pages * self.page_tokens
        self.client.insert(self.tokens[begin:end], now, lock=self.held, **how)
        self.matched_pages += pages

    def _write_on(self) -> None:
        for value in count():
            for page in self.pages:
                self._fill(page, value)
            if self._stop_writing.is_set():
                return

    def _fill(self, page: int, value: float) -> None:
        if self.pool is None:
            return
        for layer in range(self.client.pool.layout.layers):
            self.pool.keys(layer)[page] = value
            self.pool.values(layer)[page] = value


class Churn:
    """A thread that makes requests of its own and counts how they end."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._generations: dict[int, int] = {}
        self._errors: set[tuple[str, str]] = set()
        self._pause = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def answer(self) -> dict:
        """Returns the finished requests of each generation of the session; errors."""
        return {
            "finished": {str(k): v for k, v in self._generations.items()},
            "errors": sorted(self._errors),
        }

    def _run(self) -> None:
        random = np.random.default_rng()
        while True:
            try:
                generation = self._client.generation
                self._request(random.integers(0, 4, 100, np.uint32))
                done = self._generations.get(generation, 0)
                self._generations = {**self._generations, generation: done + 1}
            except PandoError as error:
                failure = (type(error).__name__, error.reason)
                self._errors = self._errors | {failure}
                self._pause.wait(0.01)

    def _request(self, tokens: np.ndarray) -> None:
        match = self._client.match_prefix(tokens, lock=True, reserve_tokens=tokens.size)
        whole = match.reserved_page_ids.size - 1
        self._client.insert(
            tokens[match.matched_tokens :],
            match.reserved_page_ids[:whole],
            lock=match.lock,
            unlock=True,
            free_page_ids=match.reserved_page_ids[whole:],
        )


def main() -> None:
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        try:
            getattr(worker, line.strip())()
            answer = worker.answer()
        except PandoError as error:
            answer = {"error": error.reason}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
