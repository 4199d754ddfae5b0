"""Times single calls of the Python client, on a lane and over gRPC, in rounds of each.

usage: python call_times.py ADDRESS
"""

import json
import statistics
import sys
import time

import numpy as np
from pando_kv import Client, PrefixQuery

ROUNDS = 20
ROUND_SECONDS = 0.1
TOKENS = 1024
QUERIES, QUERY_TOKENS = 128, 2000


def p50_us(call, seconds: float) -> float:
    spent = []
    now = time.perf_counter_ns
    end = now() + seconds * 1e9
    while (begin := now()) < end:
        call()
        spent.append(now() - begin)
    return statistics.median(spent) / 1000


def publish(client: Client, prompt: np.ndarray) -> None:
    match = client.match_prefix(prompt, lock=True, reserve_tokens=prompt.size)
    rest = prompt.size - match.matched_tokens
    pages = match.reserved_page_ids[: rest // client.pool.layout.page_tokens]
    client.insert(
        (),
        pages,
        lock=match.lock,
        unlock=True,
        prompt_tokens=rest,
        free_page_ids=match.reserved_page_ids[pages.size :],
    )


def main(address: str) -> None:
    with Client(address) as lane, Client(address, lane=False) as grpc:
        assert lane.transport == "lane", lane.why_no_lane
        prompt = np.arange(TOKENS, dtype=np.uint32)
        publish(lane, prompt)
        shared = np.full(QUERY_TOKENS // 2, 7, np.uint32)
        queries = [
            PrefixQuery(
                np.concatenate([shared, np.full(QUERY_TOKENS // 2, 1000 + i)]).astype(
                    np.uint32
                )
            )
            for i in range(QUERIES)
        ]
        for query in queries:
            publish(lane, query.tokens)
        score = [PrefixQuery(prompt)]
        calls = {
            "match_lane": lambda: lane.match_prefix(prompt),
            "score_lane": lambda: lane.match_prefixes(score),
            "match_grpc": lambda: grpc.match_prefix(prompt),
            "queue_lane": lambda: lane.match_prefixes(queries),
            "queue_grpc": lambda: grpc.match_prefixes(queries),
            "gauges": lane.gauges,
        }
        rounds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                rounds[name].append(p50_us(call, ROUND_SECONDS))
        print(json.dumps({n: statistics.median(r) for n, r in rounds.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
