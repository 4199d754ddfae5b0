"""Times of several ways to do one thing, which take turns."""

import time
from collections.abc import Callable
from statistics import median, quantiles

ROUNDS = 20


def p50s_in_turns(
    ways: dict[str, Callable[[int], Callable[[], object]]], calls: int
) -> dict[str, float]:
    """Seconds. `ways` get the number of a call and make what is timed. In each round a
    way has so many calls. Other work on the machine slows some rounds down: of the
    medians of the rounds it is the lower quartile."""
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS):
        for name, make in ways.items():
            spent = []
            for call in range(number * calls, (number + 1) * calls):
                do = make(call)
                begin = time.perf_counter()
                do()
                spent.append(time.perf_counter() - begin)
            rounds[name].append(median(spent))
    return {name: quantiles(each, n=4)[0] for name, each in rounds.items()}
