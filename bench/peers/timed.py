"""Times a look-up and prints the times as JSON."""

import json
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TOKENS = 8192
_WARM_UP = 20
_CALLS = 400


def print_times(look_up: Callable[[int], T], release: Callable[[T], None]) -> None:
    """Prints the p50 and p99 of `look_up` in microseconds. `release` gives back what
    `look_up` returned, and is not timed."""
    spent = []
    for number in range(_WARM_UP + _CALLS):
        begin = time.perf_counter_ns()
        held = look_up(number)
        spent.append((time.perf_counter_ns() - begin) / 1000)
        release(held)
    measured = sorted(spent[_WARM_UP:])
    p99 = measured[int(0.99 * len(measured))]
    print(json.dumps({"p50": statistics.median(measured), "p99": p99}))
