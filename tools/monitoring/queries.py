"""PromQL over the metrics of the catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catalogue import Catalogue

# A label's value: equal to it, unlike it when it begins with "!", or one of several.
Value = str | tuple[str, ...]
Labels = Sequence[str]


@dataclass(frozen=True)
class Queries:
    """Writes queries of known metrics and labels only.

    All sums are by the labels `always_by` too. `matchers` narrow down whatever has
    their labels; `window` is that of rates.
    """

    catalogue: Catalogue
    matchers: dict[str, str]
    window: str
    always_by: tuple[str, ...] = ()

    def of_all_classes(self) -> "Queries":
        """Queries that can be compared with metrics without classes of namespaces."""
        matchers = {k: v for k, v in self.matchers.items() if k != "ns_class"}
        return replace(self, matchers=matchers)

    def over(self, window: str) -> "Queries":
        return replace(self, window=window)

    def by_instance(self) -> "Queries":
        return replace(self, always_by=("job", "instance"))

    def select(self, name: str, **labels: Value) -> str:
        """The series of a metric."""
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
        """The sum of gauges."""
        return self._sum(self.select(name, **labels), by)

    def most(self, name: str, by: Labels = (), **labels: Value) -> str:
        """The largest of gauges."""
        return self._aggregate("max", self.select(name, **labels), by)

    def rate(self, name: str, by: Labels = (), **labels: Value) -> str:
        """The sum of counters, per second."""
        return self._sum(f"rate({self.select(name, **labels)}[{self.window}])", by)

    def increase(self, name: str, by: Labels = (), **labels: Value) -> str:
        """Whole numbers: Prometheus extrapolates to the ends of the window."""
        selected = self.select(name, **labels)
        return f"round({self._sum(f'increase({selected}[{self.window}])', by)})"

    def quantile(self, q: float, name: str, by: Labels = (), **labels: Value) -> str:
        """A quantile of a histogram; nothing where nothing was observed.

        The quantile is NaN then, which is not >= 0.
        """
        buckets = self.buckets(name, by, **labels)
        return f"histogram_quantile({q:g}, {buckets}) >= 0"

    def buckets(self, name: str, by: Labels = (), **labels: Value) -> str:
        """The rates of a histogram's buckets."""
        return self.rate(f"{name}_bucket", ("le", *by), **labels)

    def mean(self, name: str, by: Labels = (), **labels: Value) -> str:
        """The mean of what a histogram observed."""
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
    """Nothing, instead of NaN, where there is nothing below."""
    return f"{above}\n/ ({below} > 0)"
