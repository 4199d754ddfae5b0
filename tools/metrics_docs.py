"""Writes docs/metrics.md from the catalogue of metrics that pandod prints.

usage: metrics_docs.py [--check] PANDOD

--check writes nothing, and fails when the file differs.
"""

import argparse
import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

HEAD = """\
# Metrics

All metrics of `pandod`, served at `/metrics` of `--http`. Written by `tools/metrics_docs.py` from the catalogue in
`service/metrics/`, which `pandod --print-metrics` prints as JSON: change it there.

Every series is there, at 0, from the start; only those of workers come and go with them, and those of reuse are there while
it is learnt: under the policy `reuse`, and always with `--learn-reuse yes`; hits of what was loaded are there with a tier. All that comes from the cache is of one consistent
picture, so that pages by state sum to the capacity in every scrape; the figures of workers are of the next moment. There are
at most 2,400 series. Control characters and marks of direction in a label's value are written as `\\u001b`.
"""


def label_text(label: dict) -> str:
    values = label.get("any") or ", ".join(f"`{value}`" for value in label["values"])
    return f"`{label['name']}`: {values}"


def row(metric: dict) -> str:
    labels = "<br>".join(map(label_text, metric["labels"]))
    return f"| `{metric['name']}` | {metric['type']} | {labels} | {metric['help']} |"


def section(title: str, metrics: list[dict]) -> str:
    rows = "\n".join(map(row, metrics))
    return f"## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n{rows}\n"


def buckets(catalogue: list[dict]) -> str:
    """Returns a table that groups the histograms by their buckets."""
    names: dict[tuple[float, ...], list[str]] = {}
    for metric in catalogue:
        if metric["type"] == "histogram":
            names.setdefault(tuple(metric["buckets"]), []).append(metric["name"])
    rows = "\n".join(
        f"| {', '.join(f'`{name}`' for name in group)} | {' '.join(f'{b:g}' for b in bounds)} |"
        for bounds, group in names.items()
    )
    return (
        f"## Buckets\n\n| histogram | upper bounds, in seconds |\n|---|---|\n{rows}\n"
    )


def document(catalogue: list[dict]) -> str:
    sections = [
        section(title, list(metrics))
        for title, metrics in groupby(catalogue, key=lambda metric: metric["group"])
    ]
    return "\n".join([HEAD, *sections, buckets(catalogue)])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pandod")
    arguments = parser.parse_args()
    printed = subprocess.check_output([arguments.pandod, "--print-metrics"])
    text = document(json.loads(printed))
    if not arguments.check:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        print(f"{FILE} is not what the catalogue says; run tools/metrics_docs.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
