"""Panels of a dashboard, as plain data and as Grafana's JSON."""

from dataclasses import dataclass, field

from thresholds import Level

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""
    """The name of the query's line or column; may contain labels as {{label}}."""
    unit: str = ""
    """The unit of the query's column, if it differs from the table's unit."""
    level: Level | None = None
    """The numbers from which the query's column turns orange, and red."""


@dataclass(frozen=True)
class Panel:
    """A panel of any kind. Sizes are in cells of Grafana's grid, 24 to a line."""

    title: str
    description: str
    unit: str
    queries: list[Query]
    width: int = 8
    height: int = 8
    level: Level | None = None
    """The numbers from which the panel turns orange, and red."""
    least: float | None = 0
    most: float | None = None
    """The upper end of the axis; `least` is the lower end. None lets Grafana choose."""

    def json(self) -> dict:
        return {
            "type": self.kind(),
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "fieldConfig": {"defaults": self.defaults(), "overrides": self.overrides()},
            "options": self.options(),
            "targets": [
                self.target() | _target(LETTERS[i], query)
                for i, query in enumerate(self.queries)
            ],
        }

    def kind(self) -> str:
        raise NotImplementedError

    def options(self) -> dict:
        raise NotImplementedError

    def target(self) -> dict:
        """Returns the settings that the panel's queries share."""
        return {"range": True}

    def defaults(self) -> dict:
        ends = {"min": self.least, "max": self.most}
        return {
            "unit": self.unit,
            **{end: value for end, value in ends.items() if value is not None},
            "thresholds": _thresholds(self.level),
        }

    def overrides(self) -> list[dict]:
        return []


@dataclass(frozen=True)
class Stat(Panel):
    """A panel that shows one number, the latest one."""

    width: int = 4
    height: int = 4

    def kind(self) -> str:
        return "stat"

    def defaults(self) -> dict:
        return super().defaults() | {"noValue": "no traffic"}

    def options(self) -> dict:
        return {
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }


@dataclass(frozen=True)
class Graph(Panel):
    """A panel of lines over time."""

    stacked: bool = False

    def kind(self) -> str:
        return "timeseries"

    def defaults(self) -> dict:
        line = "off" if self.level is None else "dashed"
        custom = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 40 if self.stacked else 10,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": line},
        }
        return super().defaults() | {
            "color": {"mode": "palette-classic"},
            "custom": custom,
        }

    def options(self) -> dict:
        return {
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }


@dataclass(frozen=True)
class Heatmap(Panel):
    """A panel that shows how often values fell into each bucket of a histogram, over
    time."""

    def kind(self) -> str:
        return "heatmap"

    def target(self) -> dict:
        return {"format": "heatmap", "range": True}

    def options(self) -> dict:
        return {
            "calculate": False,
            "cellGap": 1,
            "cellValues": {"unit": "ops"},
            "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"show": True, "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "unit": self.unit},
        }


@dataclass(frozen=True)
class Table(Panel):
    """A panel with one row for each combination of labels, and one column for each
    query that has a legend; of a query without a legend only the labels are shown."""

    labels: dict[str, str] = field(default_factory=dict)
    """The titles of the labels that are shown, by label."""
    links: dict[str, str] = field(default_factory=dict)
    """The URLs to which labels lead, by label."""
    width: int = 24
    height: int = 12

    def kind(self) -> str:
        return "table"

    def target(self) -> dict:
        return {"format": "table", "instant": True, "range": False}

    def options(self) -> dict:
        return {"cellHeight": "sm", "showHeader": True}

    def json(self) -> dict:
        return super().json() | {"transformations": self._transformations()}

    def overrides(self) -> list[dict]:
        columns = [
            _override(query.legend, **_column(query))
            for query in self.queries
            if query.unit
        ]
        links = [
            _override(self.labels[label], links=[{"title": "Open", "url": url}])
            for label, url in self.links.items()
        ]
        return columns + links

    def _transformations(self) -> list[dict]:
        names = {
            f"Value #{LETTERS[i]}": query.legend
            for i, query in enumerate(self.queries)
            if query.legend
        }
        order = [*self.labels, *names]
        return [
            {"id": "merge", "options": {}},
            {"id": "filterFieldsByName", "options": {"include": {"names": order}}},
            {
                "id": "organize",
                "options": {
                    "indexByName": {name: i for i, name in enumerate(order)},
                    "renameByName": self.labels | names,
                },
            },
        ]


def _target(letter: str, query: Query) -> dict:
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
    }


def _thresholds(level: Level | None) -> dict:
    return {
        "mode": "absolute",
        "steps": [{"color": color, "value": at} for color, at in _steps(level)],
    }


def _steps(level: Level | None) -> list[tuple[str, float | None]]:
    """Returns each color and the number at which it begins; the first one has none."""
    if level is None:
        return [("blue", None)]
    if level.low_is_bad:
        return [("red", None), ("orange", level.bad), ("green", level.warn)]
    orange = [] if level.warn == level.bad else [("orange", level.warn)]
    red = [] if level.bad is None else [("red", level.bad)]
    return [("green", None), *orange, *red]


def _column(query: Query) -> dict:
    if query.level is None:
        return {"unit": query.unit}
    return {
        "unit": query.unit,
        "thresholds": _thresholds(query.level),
        "custom.cellOptions": {"type": "color-text"},
    }


def _override(column: str, **properties: object) -> dict:
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [
            {"id": id_, "value": value} for id_, value in properties.items()
        ],
    }
