"""Followers of the events, one of which has a small buffer for unread events."""

import numpy as np
from event_follower import Follower
from marked_prompts import CACHE_SALT
from soak.accounts import settled

NARROW = [False, True]


class Watchers:
    def __init__(self, address: str) -> None:
        self._address = address
        self._followers: list[Follower] = []
        self.lost = 0
        """How often the followers that were closed had to begin anew."""

    def open(self) -> None:
        for narrow in NARROW:
            follower = Follower(self._address, CACHE_SALT, narrow=narrow)
            self._followers.append(follower.__enter__())

    def close(self) -> None:
        for follower in self._followers:
            self.lost += len(follower.lost)
            follower.__exit__()
        self._followers.clear()

    def some(self, random: np.random.Generator) -> Follower:
        return self._followers[random.integers(len(self._followers))]

    def failures(self) -> list[str]:
        return [f"a watcher: {f.error!r}" for f in self._followers if f.error]

    def differing(self) -> list[str]:
        """Returns the followers whose blocks stay wrong while nothing changes."""
        with Follower(self._address, CACHE_SALT) as fresh:

            def wrong() -> list[str]:
                if not fresh.live:
                    return ["there is no snapshot of the events"]
                return [
                    f"a watcher knows {len(follower.blocks)} blocks, "
                    f"{len(fresh.blocks)} are cached, or others"
                    for follower in self._followers
                    if follower.blocks != fresh.blocks
                ]

            return self.failures() or settled(wrong)
