"""One machine of a fleet: a real pandod that publishes its blocks to routers."""

from pathlib import Path
from types import TracebackType

import numpy as np
from metrics_page import MetricsPage, free_address
from pando_kv import Client, Namespace, PrefixQuery
from pandod_process import PAGE_TOKENS, Pandod

DRAIN_AT_ONCE = {"drain_timeout": "0s"}


class Machine:
    def __init__(self, folder: Path, number: int, **options: object) -> None:
        self.number = number
        # Each of two workers has a port for events and one for replays.
        host, port = free_address(ports=5).rsplit(":", 1)
        self.events = f"tcp://{host}:{port}"
        self.replay = f"tcp://{host}:{int(port) + 2}"
        self.http = f"{host}:{int(port) + 4}"
        self.page_tokens = PAGE_TOKENS
        told = {"kv_events": self.events, "kv_events_replay": self.replay}
        self.pandod = Pandod(
            folder, **(DRAIN_AT_ONCE | {"http": self.http} | told | options)
        )
        self.client: Client | None = None

    def __enter__(self) -> "Machine":
        self.pandod.start()
        self.client = Client(self.pandod.address, name="worker")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        self.pandod.close_in_order()

    def kill_and_restart(self) -> None:
        self.pandod.kill()
        self.client.close()
        self.pandod.start()
        self.client = Client(self.pandod.address, name="worker")

    def put(self, tokens: list[int], namespace: Namespace | None = None) -> None:
        """Makes a request with this prompt, and publishes the missing pages."""
        prompt = np.array(tokens, np.uint32)
        match = self.client.match_prefix(
            prompt,
            namespace=namespace,
            max_tokens=len(tokens) - 1,
            lock=True,
            reserve_tokens=len(tokens),
        )
        # The last pair of a page ends with the token after the page.
        after = int(namespace is not None and namespace.bigram)
        rest = prompt[match.matched_tokens :]
        whole = (len(rest) - after) // self.page_tokens
        self.client.insert(
            rest[: whole * self.page_tokens + after],
            match.reserved_page_ids[:whole],
            lock=match.lock,
            unlock=True,
            free_page_ids=match.reserved_page_ids[whole:],
        )

    def holds(self, tokens: list[int], namespace: Namespace | None = None) -> int:
        """Returns how many tokens of this prompt are cached, as a router would ask."""
        query = PrefixQuery(np.array(tokens, np.uint32), namespace=namespace)
        (score,) = self.client.match_prefixes([query])
        return score.matched_tokens

    def metrics(self) -> MetricsPage:
        return MetricsPage(self.http)
