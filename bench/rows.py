"""Rows of the table of benchmarks, and functions that print them."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Row:
    """One row of the table. A target is a bound on the value, on its ratio to the
    floor, or on both."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    limit: float | None = None
    ratio_limit: float | None = None
    # If set, the limits bound the figures from below.
    is_minimum: bool = False

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def target(self) -> str:
        sign = ">=" if self.is_minimum else "<="
        bounds = []
        if self.limit is not None:
            bounds.append(f"{sign} {self.limit:,g} {self.unit}".strip())
        if self.ratio_limit is not None:
            bounds.append(f"ratio {sign} {self.ratio_limit:g}")
        return ", ".join(bounds)

    @property
    def verdict(self) -> str:
        """Returns "ok", "MISSED", or "" if the row has no bounds. If only one of two
        bounds is kept, the verdict is "ratio ok" or "ratio MISSED"."""
        kept = [
            self._keeps(measured, bound)
            for measured, bound in (
                (self.value, self.limit),
                (self.ratio, self.ratio_limit),
            )
            if bound is not None
        ]
        if not kept:
            return ""
        if all(kept):
            return "ok"
        if not any(kept):
            return "MISSED"
        return "ratio ok" if kept[1] else "ratio MISSED"

    def _keeps(self, measured: float, bound: float) -> bool:
        return measured >= bound if self.is_minimum else measured <= bound


def json_of(*command: str | Path) -> dict:
    """Runs a benchmark program and returns the JSON that it prints."""
    return json.loads(subprocess.check_output([str(part) for part in command]))


def print_rows(rows: list[Row]) -> None:
    table = [["what", "measured", "", "floor", "ratio", "target", ""]]
    for row in rows:
        table.append(
            [
                row.name,
                f"{row.value:,.2f}",
                row.unit,
                f"{row.floor:,.2f}" if row.floor else "",
                f"{row.ratio:.2f}" if row.floor else "",
                row.target,
                row.verdict,
            ]
        )
    print_table(table)


def print_table(table: list[list[str]]) -> None:
    """Prints a table with texts aligned left and numbers aligned right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        cells = [
            cell.rjust(width)
            if cell[:1].isdigit() or line is table[0] and i > 1
            else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
