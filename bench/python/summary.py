"""Summarizes the times of requests, as the benchmarks print them."""

import json
from collections.abc import Sequence

import numpy as np


def times(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Returns the mean, p50 and p99 in microseconds."""
    us = np.asarray(nanoseconds) / 1000
    return {
        "mean": float(us.mean()),
        "p50": float(np.median(us)),
        "p99": float(np.percentile(us, 99)),
    }


def print_result(name: str, requests: Sequence[int], hit_rate: float) -> None:
    print(json.dumps({"name": name, "hit_rate": hit_rate, **times(requests)}))
