"""Lines of the table of benchmarks, and how they are printed."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Row:
    """One line; a target is a bound on value or on its ratio to the floor."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    limit: float | None = None
    ratio_limit: float | None = None
    # The limits bound from below.
    is_minimum: bool = False

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def target(self) -> str:
        sign = ">=" if self.is_minimum else "<="
        if self.limit is not None:
            return f"{sign} {self.limit:,g} {self.unit}".strip()
        if self.ratio_limit is not None:
            return f"ratio {sign} {self.ratio_limit:g}"
        return ""

    @property
    def ok(self) -> bool:
        if self.limit is not None:
            measured, bound = self.value, self.limit
        elif self.ratio_limit is not None:
            measured, bound = self.ratio, self.ratio_limit
        else:
            return True
        return measured >= bound if self.is_minimum else measured <= bound


def json_of(*command: str | Path) -> dict:
    """What a benchmark program prints, as JSON."""
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
                ("ok" if row.ok else "MISSED") if row.target else "",
            ]
        )
    print_table(table)


def print_table(table: list[list[str]]) -> None:
    """Text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table)]
    for line in table:
        cells = [
            cell.rjust(width) if cell[:1].isdigit() or line is table[0] and i > 1
            else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ]
        print("  ".join(cells).rstrip())
