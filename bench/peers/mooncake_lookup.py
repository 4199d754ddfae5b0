"""Times a look-up of all blocks of a prompt at Mooncake's master: the master gets keys
that were made beforehand, and returns a flag for each key. The master neither hashes
nor locks.

usage: python mooncake_lookup.py MASTER TOKENS_OF_A_KEY
"""

import sys

from mooncake.store import MooncakeDistributedStore
from timed import TOKENS, print_times

POOL_BYTES, BUFFER_BYTES = 256 << 20, 64 << 20


def main(master: str, tokens_of_a_key: str) -> None:
    store = MooncakeDistributedStore()
    failed = store.setup(
        "127.0.0.1", "P2PHANDSHAKE", POOL_BYTES, BUFFER_BYTES, "tcp", "", master
    )
    assert not failed, failed
    keys = [f"{number:064x}" for number in range(TOKENS // int(tokens_of_a_key))]
    assert not store.put_batch(keys, [bytes(1024)] * len(keys))

    def look_up(_number: int) -> None:
        assert store.batch_is_exist(keys) == [1] * len(keys)

    print_times(look_up, lambda _nothing: None)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
