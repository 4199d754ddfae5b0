"""The catalogue of the metrics that pandod says it has."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_WORD = re.compile(r"[a-zA-Z_]\w*")
_OF_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")


@dataclass(frozen=True)
class Metric:
    name: str
    help: str
    is_histogram: bool
    labels: dict[str, list[str] | None]
    """The values of each label, or None if the values differ from server to server."""


class Catalogue:
    def __init__(self, entries: list[dict]) -> None:
        self._metrics = {entry["name"]: _metric(entry) for entry in entries}

    def metric(self, name: str) -> Metric:
        """Returns a metric, also by the name of a histogram's series: bucket, sum or
        count. Raises ValueError for an unknown name."""
        metric = self._metrics.get(name) or self._histogram_of(name)
        if metric is None:
            raise ValueError(f"pandod has no metric {name}")
        return metric

    def check_label(self, name: str, label: str, values: list[str]) -> None:
        """Raises ValueError unless the metric can have these values of the label."""
        labels = self.metric(name).labels
        if label not in labels:
            raise ValueError(f"{name} has no label {label}, but {list(labels)}")
        known = labels[label]
        for value in values:
            if known is not None and value not in known:
                raise ValueError(f"{label} of {name} is never {value}, but {known}")

    def used_in(self, expr: str) -> list[Metric]:
        """Returns the metrics that a query names, each once, in the query's order."""
        words = dict.fromkeys(_WORD.findall(expr))
        found = (self._metrics.get(w) or self._histogram_of(w) for w in words)
        return list({metric.name: metric for metric in found if metric}.values())

    def _histogram_of(self, series: str) -> Metric | None:
        metric = self._metrics.get(_OF_HISTOGRAM.sub("", series))
        return metric if metric and metric.is_histogram else None


def read_catalogue(pandod: Path) -> Catalogue:
    return Catalogue(json.loads(subprocess.check_output([pandod, "--print-metrics"])))


def _metric(entry: dict) -> Metric:
    return Metric(
        name=entry["name"],
        help=entry["help"],
        is_histogram=entry["type"] == "histogram",
        labels={label["name"]: label.get("values") for label in entry["labels"]},
    )
