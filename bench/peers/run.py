"""A look-up of a cached prompt of 8,192 tokens from Python: Pando beside LMCache's
server and Mooncake's master, in rounds of each.

The three servers do different work; the table says what each one does. Client and
server run on the CPUs that the system chooses. LMCache and Mooncake come from an
environment of their own, outside the clone. Without that environment, or if a server
does not start, its rows are skipped, with the reason.

usage: python bench/peers/run.py [--python PYTHON] [--build build/release]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from python_calls import serving  # noqa: E402
from rows import print_table  # noqa: E402
from servers import lmcache_server, mooncake_master  # noqa: E402

PANDO = "hashes nothing; compares tokens, locks, answers with page ids"
LMCACHE = "hashes and locks chunks of 256 tokens, answers with their number"
MOONCAKE = "looks up {} keys made beforehand; no tokens, no lock, no pages"


@dataclass
class Lookup:
    name: str
    work: str
    python: str
    program: str
    arguments: tuple[str, ...]
    server: Callable[[], AbstractContextManager[str]]

    def times(self) -> dict[str, float]:
        with self.server() as address:
            command = [self.python, HERE / self.program, address, *self.arguments]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--python", help="of an environment with LMCache and Mooncake")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    lookups = _pando(options.build)
    if options.python:
        lookups += _peers(options.python)
    measured: dict[str, list[dict[str, float]]] = {}
    skipped: dict[str, str] = {}
    for _ in range(options.rounds):
        for lookup in lookups:
            if lookup.name in skipped:
                continue
            print(f"running {lookup.name}", file=sys.stderr)
            try:
                measured.setdefault(lookup.name, []).append(lookup.times())
            except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
                skipped[lookup.name] = str(error)
    table = [["what", "p50, us", "p99, us", "what it does"]]
    for lookup in lookups:
        if lookup.name not in skipped:
            rounds = measured[lookup.name]
            p50, p99 = (median(r[figure] for r in rounds) for figure in ("p50", "p99"))
            table.append([lookup.name, f"{p50:,.0f}", f"{p99:,.0f}", lookup.work])
    print_table(table)
    for name, reason in skipped.items():
        print(f"skipped {name}: {reason}")
    if not options.python:
        print("skipped LMCache and Mooncake: they could not be installed")
    return 0


def _pando(build: Path) -> list[Lookup]:
    return [
        Lookup(
            f"Pando, match and lock, {transport}",
            PANDO,
            sys.executable,
            "pando_lookup.py",
            (transport,),
            lambda: serving(build, on_one_cpu=False),
        )
        for transport in ("lane", "grpc")
    ]


def _peers(python: str) -> list[Lookup]:
    return [
        Lookup(
            "LMCache, look-up and its status",
            LMCACHE,
            python,
            "lmcache_lookup.py",
            (),
            lambda: lmcache_server(python),
        )
    ] + [
        Lookup(
            f"Mooncake, batch_is_exist, {keys} keys",
            MOONCAKE.format(keys),
            python,
            "mooncake_lookup.py",
            (str(8192 // keys),),
            lambda: mooncake_master(python),
        )
        for keys in (32, 512)
    ]


if __name__ == "__main__":
    sys.exit(main())
