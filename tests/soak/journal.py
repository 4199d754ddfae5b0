"""A journal of disturbances, and the errors of calls that they explain."""

from dataclasses import dataclass, field
from typing import Any

FOREVER = float("inf")
# The time after a disturbance in which connections and sessions are made again.
RECOVERY_SECONDS = 10.0

# The disturbances that explain a failed call, by its reason. A full pool is not
# reported as an error.
_CAUSES = {
    "SESSION_LOST": {"cut", "cut_and_stop", "restart_pandod"},
    "NO_SESSION": {"cut", "cut_and_stop", "restart_pandod"},
    "UNAVAILABLE": {"cut", "cut_and_stop", "restart_pandod"},
    "CANCELLED": {"restart_pandod"},
    "DRAINING": {"restart_pandod"},
    "MEMORY_SOCKET": {"cut_and_stop", "restart_pandod"},
    "LOCK_UNKNOWN": {"release_locks"},
}


@dataclass
class Disturbance:
    kind: str
    begin: float
    """The beginning in seconds of the monotonic clock, as all times here."""
    end: float
    worker: int | None
    """The worker that is disturbed, or None if all are."""

    def explains(self, worker: int, error: dict[str, Any]) -> bool:
        return (
            self.kind in _CAUSES.get(error["error"], ())
            and self.worker in (None, worker)
            and self.begin <= error["at"]
            and error["began"] <= self.end + RECOVERY_SECONDS
        )


@dataclass
class Journal:
    disturbances: list[Disturbance] = field(default_factory=list)

    def note(
        self, kind: str, begin: float, end: float, worker: int | None = None
    ) -> Disturbance:
        noted = Disturbance(kind, begin, end, worker)
        self.disturbances.append(noted)
        return noted

    def explains(self, worker: int, error: dict[str, Any]) -> bool:
        return any(each.explains(worker, error) for each in reversed(self.disturbances))

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in self.disturbances:
            counts[each.kind] = counts.get(each.kind, 0) + 1
        return dict(sorted(counts.items()))
