"""Several pandods that share a store of Redis or Valkey."""

from contextlib import ExitStack
from pathlib import Path

from pandod_process import serving
from redis_server import RedisCluster, RedisServer
from tiered import Tiered


def with_options(url: str, **options: object) -> str:
    """Returns the address of a store with options in it."""
    given = [f"{name.replace('_', '-')}={value}" for name, value in options.items()]
    return "?".join([url, "&".join(given)] if given else [url])


class Sharing(Tiered):
    """One of the pandods that share the store."""

    def __init__(
        self, start, server: RedisServer | RedisCluster, **options: object
    ) -> None:
        self._server = server
        super().__init__(
            start, Path(), **{"tier_disk": None, "tier_disk_bytes": None} | options
        )

    def held_pages(self) -> int:
        return len(self._server.blocks())

    def refused(self, direction: str) -> int:
        return self.figure("remote_refused", direction=direction)


class Machines:
    """Starts each pandod as if on a machine of its own, with one shared store."""

    def __init__(self, stack: ExitStack, folder: Path, server, url: str) -> None:
        self._stack = stack
        self._folder = folder
        self._started = 0
        self.server = server
        self.url = url

    def start_with(self, **options: object) -> Sharing:
        """Starts a pandod with these options in the address of the store."""
        return self.start(tier_shared=with_options(self.url, **options))

    def start(self, **options: object) -> Sharing:
        return Sharing(
            self._serving, self.server, **{"tier_shared": self.url} | options
        )

    def _serving(self, **options: object):
        self._started += 1
        folder = self._folder / f"machine-{self._started}"
        folder.mkdir()
        return self._stack.enter_context(serving(folder, **options))
