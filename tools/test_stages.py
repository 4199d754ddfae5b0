"""Runs all stages of `make test`, and prints one summary.

A stage is a target of the Makefile. TARGET+BUILD also makes BUILD at the same time, at
the lowest priority, for later stages; a later stage reports what failed in it. A stage
leaves its tests' verdicts as JUnit XML in the folder that the variable RESULTS names. A
stage without such files (formatting, fuzzers) passes or fails as a whole. The exit
status is non-zero if anything failed.

usage: tools/test_stages.py RESULTS_FOLDER TARGET[+BUILD]...
"""

import re
import resource
import shutil
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

WIDTH = 80
# The place and the reason that GoogleTest prints for a test that skips itself.
GTEST_REASON = re.compile(r": Skipped\n(.+)")


@dataclass
class Verdicts:
    """The verdicts on the tests of one stage."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, case: ElementTree.Element) -> None:
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append(f"{case.get('classname')}::{case.get('name')}")
        elif skipped is not None:
            self.skipped[skip_reason(case, skipped)] += 1
        else:
            self.passed += 1


@dataclass
class Stage:
    target: str
    exit_code: int
    seconds: float
    cpu_seconds: float
    """The CPU time of the stage and of the build that ran meanwhile."""
    verdicts: Verdicts

    def row(self) -> str:
        verdicts = self.verdicts
        if verdicts.passed or verdicts.failed or verdicts.skipped:
            passed, failed = str(verdicts.passed), str(len(verdicts.failed))
            skipped = str(verdicts.skipped.total())
        else:
            passed = failed = skipped = "-"
        result = "ok" if self.exit_code == 0 else "FAILED"
        return (
            f"{self.target:14} {result:8} {passed:>8} {failed:>8} {skipped:>8} "
            f"{self.seconds:>9,.0f} {self.cpu_seconds:>6,.0f}"
        )


def skip_reason(case: ElementTree.Element, skipped: ElementTree.Element) -> str:
    output = "".join(case.itertext())
    said = GTEST_REASON.search(output)
    return said.group(1) if said else skipped.get("message") or "no reason given"


def read_verdicts(folder: Path) -> Verdicts:
    verdicts = Verdicts()
    for file in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(file).iter("testcase"):
            verdicts.add(case)
    return verdicts


@contextmanager
def made_meanwhile(target: str, log: Path) -> Iterator[None]:
    """Makes the target while the block runs; an empty target makes nothing."""
    if not target:
        yield
        return
    print(f"Meanwhile: make {target}, into {log}", flush=True)
    with log.open("w") as output:
        making = subprocess.Popen(
            ["nice", "-n", "19", "make", "--no-print-directory", target],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            making.wait()


def run_stage(stage: str, results: Path) -> Stage:
    target, _, build = stage.partition("+")
    folder = results / target
    # Verdicts of an earlier run must not count for this run.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"\n== {target} ==", flush=True)
    cpu_before = cpu_seconds()
    with made_meanwhile(build, folder / "meanwhile.log"):
        begin = time.monotonic()
        done = subprocess.run(
            ["make", "--no-print-directory", target, f"RESULTS={folder.resolve()}"]
        )
        seconds = time.monotonic() - begin
    cpu = cpu_seconds() - cpu_before
    return Stage(target, done.returncode, seconds, cpu, read_verdicts(folder))


def cpu_seconds() -> float:
    """Returns the CPU time of all processes that this process has waited for, and of
    their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def item(text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="      ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def summary(stages: list[Stage]) -> str:
    headings = (
        f"{'stage':14} {'result':8} {'passed':>8} {'failed':>8} {'skipped':>8} "
        f"{'seconds':>9} {'CPU':>6}"
    )
    lines = ["", headings, "-" * len(headings), *(stage.row() for stage in stages)]
    skipped = sum((stage.verdicts.skipped for stage in stages), Counter())
    if skipped:
        lines += ["", "Skipped, and why:"]
        lines += [item(f"{count:4} {why}") for why, count in skipped.most_common()]
    broken = [stage for stage in stages if stage.exit_code != 0]
    if broken:
        lines += ["", "Failed:"]
    for stage in broken:
        lines += [item(f"{stage.target}: {name}") for name in stage.verdicts.failed]
        if not stage.verdicts.failed:
            lines.append(item(f"{stage.target}: as a whole; its output is above"))
    return "\n".join(lines)


def main() -> int:
    results, asked = Path(sys.argv[1]), sys.argv[2:]
    stages = [run_stage(stage, results) for stage in asked]
    print(summary(stages))
    return any(stage.exit_code != 0 for stage in stages)


if __name__ == "__main__":
    sys.exit(main())
