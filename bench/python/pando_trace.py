"""A trace through the Python client: of each request admission (match, lock, reserve)
and finish (publish, unlock).

With --begun the client does not wait for the answer to a finish: it takes the answer
after the next admission, as an engine does that computes meanwhile.

usage: python pando_trace.py ADDRESS lane|grpc TRACE [--requests N] [--handles] [--begun]
"""

import argparse
import time
from pathlib import Path

import numpy as np
import traces
from pando_kv import Answer, Client, Insert, PrefixHandle
from summary import print_result


class BlockHandles:
    """The handles that lead to the end of each block. An engine remembers such handles
    for the conversations that it serves."""

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._by_block: dict[int, PrefixHandle] = {}

    def find(self, request: traces.Request) -> PrefixHandle | None:
        for index in reversed(range(len(request.block_ids))):
            handle = self._by_block.get(request.block_ids[index])
            if handle is not None:
                end = min((index + 1) * request.block_tokens, request.tokens - 1)
                tokens = min(end, handle.tokens)
                whole = tokens // self._page_tokens * self._page_tokens
                return PrefixHandle(handle.epoch, handle.node, whole)
        return None

    def add(self, request: traces.Request, handle: PrefixHandle | None) -> None:
        if handle is None:
            return
        for index, block in enumerate(request.block_ids):
            if (index + 1) * request.block_tokens > handle.tokens:
                break
            self._by_block.setdefault(block, handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("transport", choices=["lane", "grpc"])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--handles", action="store_true")
    parser.add_argument("--begun", action="store_true")
    options = parser.parse_args()

    spent, hit, asked = [], 0, 0
    now = time.perf_counter_ns
    lane = options.transport == "lane"
    with Client(options.address, name="bench", lane=lane) as client:
        assert client.transport == options.transport, client.why_no_lane
        page_tokens = client.pool.layout.page_tokens
        handles = BlockHandles(page_tokens)
        unfinished: list[tuple[traces.Request, Answer[Insert]]] = []
        for request in traces.read(options.trace, page_tokens, options.requests):
            prompt = request.prompt()
            after = handles.find(request) if options.handles else None
            begin = now()
            match = client.match_prefix(
                prompt, lock=True, reserve_tokens=prompt.size, after=after
            )
            matched = now()
            finish = {
                "lock": match.lock,
                "unlock": True,
                "prompt_tokens": prompt.size - match.matched_tokens,
            }
            pages = match.reserved_page_ids
            computed = now()
            if options.begun:
                done = [(each, answer.result()) for each, answer in unfinished]
                unfinished = [(request, client.begin_insert((), pages, **finish))]
            else:
                done = [(request, client.insert((), pages, **finish))]
            end = now()
            spent.append(matched - begin + end - computed)
            hit += match.matched_tokens
            asked += prompt.size
            if options.handles:
                handles.add(request, match.handle)
                for each, inserted in done:
                    handles.add(each, inserted.handle)
        for _, answer in unfinished:
            answer.result()
        assert client.check_invariants() == []
    print_result(f"Pando, {options.transport}", spent, hit / max(asked, 1))


if __name__ == "__main__":
    np.seterr(all="raise", over="ignore")
    main()
