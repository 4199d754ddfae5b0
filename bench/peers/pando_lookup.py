"""Times a match of a cached prompt that locks it: pandod gets tokens, and returns the
ids of the prompt's pages.

usage: python pando_lookup.py ADDRESS lane|grpc
"""

import sys

import numpy as np
from pando_kv import Client
from pando_kv.results import Match
from timed import TOKENS, print_times


def main(address: str, transport: str) -> None:
    with Client(address, lane=transport == "lane") as client:
        assert client.transport == transport, client.why_no_lane
        prompt = np.arange(TOKENS, dtype=np.uint32)
        first = client.match_prefix(prompt, lock=True, reserve_tokens=TOKENS)
        client.insert(
            (),
            first.reserved_page_ids,
            lock=first.lock,
            unlock=True,
            prompt_tokens=TOKENS,
        )

        def look_up(_number: int) -> Match:
            match = client.match_prefix(prompt, lock=True)
            assert match.matched_tokens == TOKENS
            return match

        print_times(look_up, lambda match: match.lock.release())


if __name__ == "__main__":
    main(*sys.argv[1:])
