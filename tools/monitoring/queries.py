"""Writes PromQL over the metrics of the catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catalogue import Catalogue

# A label's value: the label equals it, or differs from it if it begins with "!", or is
# one of several.
Value = str | tuple[str, ...]
Labels = Sequence[str]


@dataclass(frozen=True)
class Queries:
    """A writer of queries, which accepts known metrics and labels only.

    All sums are grouped by the labels `always_by` as well. `matchers` filter every
    metric that has their labels; `window` is the window of rates.
    """

    catalogue: Catalogue
    matchers: dict[str, str]
    window: str
    always_by: tuple[str, ...] = ()

    def of_all_classes(self) -> "Queries":
        """Returns a writer whose queries ignore the class of a namespace, for
        comparison with metrics that have no classes."""
        matchers = {k: v for k, v in self.matchers.items() if k != "ns_class"}
        return replace(self, matchers=matchers)

    def over(self, window: str) -> "Queries":
        return replace(self, window=window)

    def by_instance(self) -> "Queries":
        return replace(self, always_by=("job", "instance"))

    def select(self, name: str, **labels: Value) -> str:
        """Returns a selector for the series of a metric."""
        own = [self._matcher(name, label, value) for label, value in labels.items()]
        known = {"job", "instance", *self.catalogue.metric(name).labels}
        common = [
            f'{label}=~"{value}"'
            for label, value in self.matchers.items()
            if label in known and label not in labels
        ]
        matchers = ",".join(common + own)
        return f"{name}{{{matchers}}}" if matchers else name

    def now(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the sum of gauges."""
        return self._sum(self.select(name, **labels), by)

    def most(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the largest of gauges."""
        return self._aggregate("max", self.select(name, **labels), by)

    def rate(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the sum of the rates of counters, per second."""
        return self._sum(f"rate({self.select(name, **labels)}[{self.window}])", by)

    def increase(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the sum of the increases of counters. The sum is rounded,
        because Prometheus extrapolates to the ends of the window."""
        selected = self.select(name, **labels)
        return f"round({self._sum(f'increase({selected}[{self.window}])', by)})"

    def quantile(self, q: float, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for a quantile of a histogram, which yields nothing if the
        histogram observed nothing.

        Without observations the quantile is NaN, which is not >= 0.
        """
        buckets = self.buckets(name, by, **labels)
        return f"histogram_quantile({q:g}, {buckets}) >= 0"

    def buckets(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the rates of a histogram's buckets."""
        return self.rate(f"{name}_bucket", ("le", *by), **labels)

    def mean(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Returns a query for the mean of the values that a histogram observed."""
        return ratio(
            self.rate(f"{name}_sum", by, **labels),
            self.rate(f"{name}_count", by, **labels),
        )

    def _sum(self, what: str, by: Labels) -> str:
        return self._aggregate("sum", what, by)

    def _aggregate(self, function: str, what: str, by: Labels) -> str:
        labels = ", ".join((*self.always_by, *by))
        return f"{function} by ({labels}) ({what})" if labels else f"{function}({what})"

    def _matcher(self, name: str, label: str, value: Value) -> str:
        values = [value.lstrip("!")] if isinstance(value, str) else list(value)
        self.catalogue.check_label(name, label, values)
        if isinstance(value, str):
            operator = "!=" if value.startswith("!") else "="
            return f'{label}{operator}"{values[0]}"'
        return f'{label}=~"{"|".join(values)}"'


def ratio(above: str, below: str) -> str:
    """Returns a query for above / below, which yields nothing instead of NaN if `below`
    is 0."""
    return f"{above}\n/ ({below} > 0)"
