"""Times calls of a few tokens on a lane, without a pause, while others make long calls.

Reads words from the standard input, one a line: "begin" starts a measurement; "end"
ends the measurement and prints the times of its calls as JSON, in milliseconds.

usage: python lane_waits.py ADDRESS
"""

import json
import select
import sys
import time

import numpy as np
from pando_kv import Client

PROMPT = np.arange(64, dtype=np.uint32)


def main() -> None:
    with Client(sys.argv[1], name="beside others") as client:
        assert client.transport == "lane", client.why_no_lane
        for line in sys.stdin:
            assert line.strip() == "begin"
            print("began", flush=True)
            times = measure(client)
            times.sort()
            figures = {
                "calls": len(times),
                "p50": times[len(times) // 2] / 1e6,
                "p99": times[len(times) * 99 // 100] / 1e6,
                "longest": times[-1] / 1e6,
            }
            print(json.dumps(figures), flush=True)


def measure(client: Client) -> list[int]:
    """Calls until a line can be read from the standard input, takes that line, and
    returns the times of all calls in nanoseconds."""
    times = []
    while True:
        begin = time.perf_counter_ns()
        client.match_prefix(PROMPT)
        times.append(time.perf_counter_ns() - begin)
        if select.select([sys.stdin], [], [], 0)[0]:
            sys.stdin.readline()
            return times


if __name__ == "__main__":
    main()
