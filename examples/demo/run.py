"""Pando's demo: two worker processes with a real transformer share one KV cache.

Starts pandod and the workers A and B, which take turns at one workload, so each worker
continues from KV that the other one computed. A third process computes every request
again without a cache. Its replies and logits must equal the workers' to the last bit.
Exits non-zero if any check fails.
"""

import os

# More threads would change how a product's sums are split, and so their order. The
# variables are set before numpy is loaded, here and in the processes started from here.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import contextlib
import itertools
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

import backend
import pando_kv
import report
from generation import Answer
from model import ModelConfig
from pandod import console_address, running_pandod
from reference import run_reference
from report import Served
from serving import Server
from verification import ExpectedMatches, bit_faults, cache_faults, matching_faults
from worker import run_worker
from workload import Request, requests

ROOT = Path(__file__).parents[2]
POOL_PAGES = 1024


class Demo:
    """A run of the workload on the workers and on the reference, which collects the
    faults."""

    def __init__(
        self, config: ModelConfig, workers: dict[str, Server], reference: Server
    ) -> None:
        self._page_tokens = config.page_tokens
        self._workers = workers
        self._reference = reference
        self._expected = ExpectedMatches(config.page_tokens)
        # The worker that wrote each published page, by page id.
        self._writers: dict[int, str] = {}
        self.served: list[Served] = []
        self.faults: list[str] = []

    def run(self, data: Path) -> None:
        workload = requests(data)
        left = None
        with contextlib.suppress(StopIteration):
            for name in itertools.cycle(self._workers):
                served = self._serve(name, workload.send(left))
                print(report.row(served), flush=True)
                left = (served.answer.reply, served.answer.cached)

    def _serve(self, name: str, request: Request) -> Served:
        answer = self._workers[name].answer(request)
        # The reference starts after the worker has answered, because work at the same
        # time would lengthen the times of both.
        reference = self._reference.answer(request)
        self.faults += matching_faults(
            request, answer, self._expected.expect(request.prompt)
        )
        self.faults += bit_faults(request, answer, reference)
        served = Served(
            name, request, answer, reference, self._written_by(request, answer)
        )
        self._writers.update(dict.fromkeys(answer.published_pages.tolist(), name))
        self._expected.add(request, answer)
        self.served.append(served)
        return served

    def _written_by(self, request: Request, answer: Answer) -> Counter[str]:
        tokens: Counter[str] = Counter()
        for page in answer.matched_pages.tolist():
            if page in self._writers:
                tokens[self._writers[page]] += self._page_tokens
            else:
                self.faults.append(
                    f"{request.name}: matched page {page}, which no worker has published"
                )
        return tokens


def pool_options(config: ModelConfig) -> dict[str, object]:
    return {
        "--model": config.name,
        "--pool-pages": POOL_PAGES,
        "--page-tokens": config.page_tokens,
        "--layers": config.layers,
        "--heads": config.kv_heads,
        "--head-size": config.head_size,
        "--dtype": backend.kv_dtype(config).value,
        "--pool-memory": "cuda" if config.device == "cuda" else "host",
    }


def run_demo(pandod: Path, data: Path, folder: Path, config: ModelConfig) -> list[str]:
    """Runs the demo, prints its tables, and returns the faults."""
    with contextlib.ExitStack() as stack:
        http = console_address()
        address = stack.enter_context(
            running_pandod(pandod, folder, http, pool_options(config))
        )
        print(f"While it runs, watch the cache at http://{http}/console/\n", flush=True)
        operator = stack.enter_context(pando_kv.Client(address, name="demo"))
        workers = {
            name: stack.enter_context(
                Server(f"worker {name}", run_worker, config, address, name)
            )
            for name in ("A", "B")
        }
        reference = stack.enter_context(Server("the reference", run_reference, config))
        for server in (*workers.values(), reference):
            server.await_ready()

        print(report.title(config, operator.pool))
        print(report.headings())
        demo = Demo(config, workers, reference)
        demo.run(data)
        # The workers still run here, so pages or locks that they hold now were never
        # released.
        stats = operator.stats()
        faults = demo.faults + cache_faults(stats, operator.check_invariants())
    print(report.totals(demo.served))
    print()
    print(report.prefill(demo.served))
    print(report.sent(demo.served))
    print(report.pages(stats))
    if not faults:
        print(report.verified(demo.served))
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--pandod", type=Path, default=ROOT / "build/release/bin/pandod"
    )
    parser.add_argument(
        "--data", type=Path, default=ROOT / "examples/data", metavar="FOLDER"
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="compute with torch in bfloat16 there; the pool of cuda is on the GPU",
    )
    options = parser.parse_args()
    config = ModelConfig(device=options.device)
    if lack := backend.missing(config):
        parser.error(f"argument --device: {lack}")
    if not options.pandod.is_file():
        parser.error(f"argument --pandod: there is no {options.pandod}")
    # A signal to end stops all processes that are started here, as an interrupt does.
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, lambda number, _: sys.exit(128 + number))
    try:
        with tempfile.TemporaryDirectory(prefix="pando-demo-") as folder:
            faults = run_demo(options.pandod, options.data, Path(folder), config)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    for fault in faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
