"""Thresholds from which a figure means trouble, the same in alerts and in panels."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Level:
    """The numbers from which a panel turns orange (`warn`) and red (`bad`).

    If `bad` is less than `warn`, low values are bad. Warnings fire from `warn` on,
    critical alerts from `bad` on. If both are equal, the panel is never orange.
    """

    warn: float
    bad: float | None = None

    @property
    def low_is_bad(self) -> bool:
        return self.bad is not None and self.bad < self.warn


# Shares from 0 to 1.
UNEVICTABLE_PAGES = Level(0.9, 0.98)
FAILED_RESERVATIONS = Level(0.001, 0.01)
FAILED_CALLS = Level(0.001, 0.01)
HIT_RATIO_KEPT = 0.5  # of yesterday's hit ratio
HITS_LOST_TO_SIZE = Level(0.2, 0.5)  # of the tokens asked for
WAITS_TIMED_OUT = 0.5
OPEN_FILES = Level(0.8, 0.95)

# Times in seconds.
IDLE_BEFORE_EVICTION = Level(30, 5)
OLDEST_LOCK = Level(1800, 7200)
CALL_P99 = Level(0.005, 0.05)
LOCK_WAIT_P99 = Level(0.001, 0.01)

# Counts.
REFUSALS = Level(1)
LOST_WORKERS = Level(1, 3)
QUARANTINED_PAGES = Level(1)
DRAINING_SERVERS = Level(1)
VIOLATIONS = Level(1, 1)

# Other thresholds.
TOKENS_PER_SECOND_THAT_COUNT = 1000
RESTARTS = 2
LOST_SESSIONS = 2
