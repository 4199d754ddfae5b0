"""What blocks cost an engine and save it: one cache for the machine.

Prints tables as bench/run.py does. Each floor is measured in the same run: vLLM's own
manager in the same process, in turns with Pando's; memcpy of the same bytes; the same
calls over gRPC. The program runs in vLLM's environment (make bench-machine). The
benchmark of two engines is in bench/engines.

usage: run.py [--build build/release] [--only core|calls|manager|copies ...]
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from core_rows import block_rows  # noqa: E402
from rows import Row, print_rows  # noqa: E402
from started_pandod import started_pandod  # noqa: E402

PARTS = ["core", "calls", "manager", "copies"]
MEMORY = "2GiB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--only", choices=PARTS, action="append")
    options = parser.parse_args()
    wanted = options.only or PARTS
    rows = []
    if "core" in wanted:
        rows += block_rows(options.build)
    with on_one_cpu() as cpu:
        for part in PARTS[1:]:
            if part in wanted:
                with started_pandod(options.build, "--memory", MEMORY, cpu=cpu) as (
                    address,
                    _,
                ):
                    rows += rows_of(part, address)
    print_rows(rows)
    return 0


def rows_of(part: str, address: str) -> list[Row]:
    """Returns the rows of a part. Imports an engine's packages only for the parts that
    need them."""
    if part == "calls":
        from block_calls import block_call_rows

        return block_call_rows(address)
    if part == "manager":
        from manager_times import manager_rows

        return manager_rows(address)
    from host_copies import host_copy_rows

    return host_copy_rows(address)


@contextmanager
def on_one_cpu() -> Iterator[int]:
    """Yields the only CPU on which this process runs until the block ends."""
    before = os.sched_getaffinity(0)
    cpu = min(before)
    os.sched_setaffinity(0, {cpu})
    try:
        yield cpu
    finally:
        os.sched_setaffinity(0, before)


if __name__ == "__main__":
    sys.exit(main())
