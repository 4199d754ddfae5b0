"""A recorded trace, replayed by `pandoctl replay` on a pandod of its own."""

import argparse
import subprocess
import tempfile
from pathlib import Path

from pandod import running_pandod

PAGE_TOKENS = 16
OPTIONS = {
    "--model": "replay",
    "--page-tokens": PAGE_TOKENS,
    # The smallest layout, because a replay writes no KV.
    "--layers": 1,
    "--heads": 1,
    "--head-size": 8,
    "--dtype": "bfloat16",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pandod", type=Path, required=True)
    parser.add_argument("--pandoctl", type=Path, required=True)
    parser.add_argument("--pool-tokens", type=int, required=True)
    parser.add_argument("trace", type=Path)
    arguments = parser.parse_args()
    # The pool has one page more, because the padding page holds no tokens.
    options = {**OPTIONS, "--pool-pages": arguments.pool_tokens // PAGE_TOKENS + 1}
    with (
        tempfile.TemporaryDirectory(prefix="pando-replay-") as folder,
        running_pandod(arguments.pandod, Path(folder), "", options) as address,
    ):
        subprocess.run(
            [
                arguments.pandoctl,
                "--yes",
                "--address",
                address,
                "replay",
                arguments.trace,
            ],
            check=True,
        )


if __name__ == "__main__":
    main()
