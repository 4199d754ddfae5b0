"""Times several ways to do one thing, which take turns."""

import time
from collections.abc import Callable
from statistics import median, quantiles

ROUNDS = 20


def p50s_in_turns(
    ways: dict[str, Callable[[int], Callable[[], object]]], calls: int
) -> dict[str, float]:
    """Returns a time in seconds for each way. A way is a function that gets the number
    of a call and returns the function to be timed. Each way makes `calls` calls in each
    of ROUNDS rounds. The result is the lower quartile of the rounds' medians, because
    other work on the machine slows some rounds down."""
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
