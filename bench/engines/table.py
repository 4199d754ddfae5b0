"""Prints the measured figures as a table, with a column for each way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

# The name of a row, the function that computes its figure, and the figure's format.
Row = tuple[str, Callable[[Any], float], str]


def show(measured: Mapping[str, Any]) -> None:
    """Prints a column for each entry; the last entry must be the way without Pando."""
    columns = list(measured.values())
    print(" " * 58 + "".join(f"{name:>12}" for name in measured))
    for name, figure, form in ROWS:
        figures = [figure(column) for column in columns]
        values = ["" if math.isnan(each) else form.format(each) for each in figures]
        print(f"{name:58}" + "".join(f"{value:>12}" for value in values))
    own = columns[-1]
    if "caching" in own.spent:
        ratio = columns[0].spent["caching"] / own.spent["caching"]
        print(
            f"\nIn the prefix cache: {ratio:.2f} of the time of the engine's own "
            "(target: at most 0.50)"
        )


def _each(name: str, scale: float = 1.0) -> Callable[[Any], float]:
    return lambda m: scale * m.spent.get(name, float("nan")) / m.requests


ROWS: list[Row] = [
    (
        "cached of the prompts' tokens, %",
        lambda m: 100 * m.cached / m.prompt_tokens,
        "{:.1f}",
    ),
    ("requests a second, two engines", lambda m: m.requests / m.seconds, "{:.2f}"),
    (
        "first token of a prompt that the other computed, ms",
        lambda m: 1e3 * m.first_token,
        "{:.0f}",
    ),
    ("the engine's scheduler, ms a request", _each("scheduling", 1e3), "{:.2f}"),
    ("of it in the prefix cache, ms a request", _each("caching", 1e3), "{:.3f}"),
    ("of it in calls to pandod, ms a request", _each("calling", 1e3), "{:.3f}"),
    ("calls to pandod a request", _each("calls"), "{:.1f}"),
    ("bytes to and from pandod a request", _each("bytes"), "{:,.0f}"),
]
