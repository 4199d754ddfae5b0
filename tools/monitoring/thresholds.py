"""From where on something is wrong: the same in alerts and in panels."""

# Shares, from 0 to 1.
UNEVICTABLE_PAGES = 0.9
FAILED_RESERVATIONS = 0.01
FAILED_CALLS = 0.01
HIT_RATIO_KEPT = 0.5  # of yesterday's
HITS_LOST_TO_SIZE = 0.2  # of the tokens asked for
WAITS_TIMED_OUT = 0.5
OPEN_FILES = 0.8

# Seconds.
IDLE_BEFORE_EVICTION = 30
OLDEST_LOCK = 1800
CALL_P99 = 0.005
LOCK_WAIT_P99 = 0.001

# Others.
TOKENS_PER_SECOND_THAT_COUNT = 1000
RESTARTS = 2
LOST_SESSIONS = 2
