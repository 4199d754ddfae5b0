#!/usr/bin/env python3
"""Runs test programs that were built with the preset "coverage" and prints how
much of a folder they cover: lines and branches of each file, then every branch
that no test took. Left out are branches that are not in the source: those of defaulted
operators, and the one of a switch that none of its cases takes (the compiler
warns where a case is missing).

usage: tools/coverage.py --folder core PROGRAM...
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A tenth of the default number of operations covers all that random programs ever
# cover.
ENVIRONMENT = {"PANDO_TEST_OPERATIONS": "120000"}

# Source lines whose branches the compiler adds.
NOT_WRITTEN = re.compile(r"= default;$|^switch \(")

# One side of a branch: the line and column of its condition, and its outcome.
Side = tuple[int, int, bool]


def tool(name: str) -> str:
    """Returns the name of an LLVM tool, with the suffix -14 if such a program exists.
    Exits if the tool is missing."""
    for candidate in (f"{name}-14", name):
        found = subprocess.run(["which", candidate], capture_output=True, text=True)
        if found.returncode == 0:
            return candidate
    sys.exit(f"{name} is missing; Debian's package llvm has it")


def run_tests(programs: list[Path], folder: Path) -> list[Path]:
    profiles = []
    for program in programs:
        profile = folder / f"{program.name}.profraw"
        environment = os.environ | ENVIRONMENT | {"LLVM_PROFILE_FILE": str(profile)}
        print(f"running {program.name}", flush=True)
        subprocess.run([program, "--gtest_brief=1"], env=environment, check=True)
        profiles.append(profile)
    return profiles


def export(programs: list[Path], profiles: list[Path], folder: Path) -> dict:
    merged = folder / "merged.profdata"
    subprocess.run(
        [tool("llvm-profdata"), "merge", "-o", merged, *profiles], check=True
    )
    objects = [f"-object={program}" for program in programs[1:]]
    command = [tool("llvm-cov"), "export", f"-instr-profile={merged}", programs[0]]
    result = subprocess.run(command + objects, capture_output=True, check=True)
    return json.loads(result.stdout)["data"][0]


def sides(file: dict) -> dict[Side, int]:
    """Returns how often each side was taken, over all instances of a template."""
    taken: dict[Side, int] = defaultdict(int)
    for line, column, _, _, true_count, false_count, *_ in file["branches"]:
        taken[line, column, True] += true_count
        taken[line, column, False] += false_count
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True)
    parser.add_argument("programs", nargs="+", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        profiles = run_tests(args.programs, Path(name))
        data = export(args.programs, profiles, Path(name))

    print(f"\n{'file':36} {'lines':>13} {'branches':>13}")
    missed: list[str] = []
    totals = [0, 0, 0, 0]
    for file in sorted(data["files"], key=lambda f: f["filename"]):
        path = Path(file["filename"]).resolve()
        if not path.is_relative_to(ROOT / args.folder):
            continue
        lines = file["summary"]["lines"]
        source = [line.strip() for line in path.read_text().splitlines()]
        taken = {
            side: count
            for side, count in sides(file).items()
            if not NOT_WRITTEN.search(source[side[0] - 1])
        }
        counts = [
            lines["covered"],
            lines["count"],
            sum(count > 0 for count in taken.values()),
            len(taken),
        ]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        path = path.relative_to(ROOT)
        print_row(str(path), counts)
        for (line, column, outcome), count in sorted(taken.items()):
            if count == 0:
                where = f"{path}:{line}:{column}"
                missed.append(f"{where}: never {outcome}: {source[line - 1]}")
    print_row("all", totals)
    print(f"\nBranches that no test took: {len(missed)}")
    print("\n".join(missed))


def print_row(name: str, counts: list[int]) -> None:
    cells = []
    for covered, count in (counts[:2], counts[2:]):
        share = f"{100 * covered / count:5.1f}%" if count else "     -"
        cells.append(f"{covered:>5}/{count:<5}{share:>7}"[-18:])
    print(f"{name:36} {cells[0]} {cells[1]}")


if __name__ == "__main__":
    main()
