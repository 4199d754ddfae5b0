"""Times a look-up of a cached prompt at LMCache's server: the server gets tokens, locks
the prompt for one reader, and returns the number of chunks. The client is that of
LMCache's own benchmark.

usage: python lmcache_lookup.py RPC_URL
"""

import sys
import time
from dataclasses import replace

from lmcache.cli.commands.bench.server_bench.client import (
    RequestContext,
    ServerBenchClient,
)
from lmcache.cli.commands.bench.server_bench.config import BenchConfig
from timed import TOKENS, print_times

BLOCK_TOKENS = 16
STORED_LOOKS = 100


def main(url: str) -> None:
    client = ServerBenchClient(
        BenchConfig(
            rpc_url=url,
            http_url="",
            mode="cpu",
            transfer_mode="lmcache_driven",
            tp_size=1,
            use_mla=False,
            num_tokens=TOKENS,
            # The shape makes the KV small: one layer with one head of size 8.
            kvcache_shape_spec=f"(2,1024,{BLOCK_TOKENS},1,8):float16:1",
            num_blocks=1024,
            block_size=BLOCK_TOKENS,
        ),
        lambda _line: None,
    )
    client.start()
    try:
        prompt = client.create_request(1, "publish", "cold")
        assert prompt is not None
        client.lookup(prompt)
        client.store(prompt, 0, prompt.num_full_tokens)
        client.end_session(prompt)
        _await_stored(client, prompt)

        def look_up(number: int) -> RequestContext:
            request = replace(prompt, request_id=f"request-{number}")
            found = client.lookup(request)
            assert found.is_full_hit, found
            return request

        def release(request: RequestContext) -> None:
            # Only a read releases the lock.
            client.retrieve(request, 0, request.num_full_tokens)
            client.end_session(request)

        print_times(look_up, release)
    finally:
        client.close()


def _await_stored(client: ServerBenchClient, prompt: RequestContext) -> None:
    """Waits until the whole prompt is found, because the server stores in the
    background. Raises RuntimeError if STORED_LOOKS look-ups do not find it."""
    for attempt in range(STORED_LOOKS):
        request = replace(prompt, request_id=f"stored-{attempt}")
        found = client.lookup(request)
        if found.hit_chunks:
            client.retrieve(request, 0, found.hit_chunks * prompt.chunk_size)
        client.end_session(request)
        if found.is_full_hit:
            return
        time.sleep(0.05)
    raise RuntimeError("what was stored is not found")


if __name__ == "__main__":
    main(*sys.argv[1:])
