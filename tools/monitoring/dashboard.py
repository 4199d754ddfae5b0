"""A dashboard: rows of panels, with the variables and links of all dashboards."""

from dataclasses import dataclass, field, replace

from catalogue import Catalogue
from panels import DATASOURCE, Panel
from queries import Queries

GRID_WIDTH = 24
TAG = "pando"

# The labels by which the variables of a dashboard filter.
MATCHERS = {"job": "$job", "instance": "$instance", "ns_class": "$ns_class"}


@dataclass(frozen=True)
class Row:
    title: str
    panels: list[Panel]


@dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    description: str
    rows: list[Row]
    inputs: list["Input"] = field(default_factory=list)


@dataclass(frozen=True)
class Input:
    """A number that only the reader knows; a query refers to it as $name."""

    name: str
    label: str
    default: str

    def json(self) -> dict:
        return {
            "type": "textbox",
            "name": self.name,
            "label": self.label,
            "query": self.default,
            "current": {"text": self.default, "value": self.default},
        }


def dashboard_queries(catalogue: Catalogue) -> Queries:
    return Queries(catalogue, MATCHERS, window="$__rate_interval")


def dashboard_json(dashboard: Dashboard, catalogue: Catalogue) -> dict:
    queries = dashboard_queries(catalogue)
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "schemaVersion": 39,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [_links()],
        "annotations": {"list": [_restarts(queries)]},
        "templating": {
            "list": [*_variables(queries), *(i.json() for i in dashboard.inputs)]
        },
        "panels": _placed(dashboard.rows, catalogue),
    }


def _placed(rows: list[Row], catalogue: Catalogue) -> list[dict]:
    """Places all panels from left to right and downwards, each row under its title."""
    placed: list[dict] = []
    top = 0
    for row in rows:
        title = {"type": "row", "title": row.title, "collapsed": False, "panels": []}
        placed.append(title | {"gridPos": _position(0, top, GRID_WIDTH, 1)})
        left, top, line_height = 0, top + 1, 0
        for panel in row.panels:
            if left + panel.width > GRID_WIDTH:
                left, top, line_height = 0, top + line_height, 0
            position = _position(left, top, panel.width, panel.height)
            placed.append(_explained(panel, catalogue).json() | {"gridPos": position})
            left += panel.width
            line_height = max(line_height, panel.height)
        top += line_height
    return [{"id": i, **panel} for i, panel in enumerate(placed, start=1)]


def _explained(panel: Panel, catalogue: Catalogue) -> Panel:
    """Returns the panel with the meanings of its metrics added to its description."""
    exprs = " ".join(query.expr for query in panel.queries)
    meanings = [f"- `{m.name}`: {m.help}" for m in catalogue.used_in(exprs)]
    text = "\n".join([panel.description, "", *meanings])
    return replace(panel, description=text)


def _position(left: int, top: int, width: int, height: int) -> dict:
    return {"x": left, "y": top, "w": width, "h": height}


def _links() -> dict:
    return {
        "type": "dashboards",
        "title": "Pando",
        "tags": [TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
    }


def _restarts(queries: Queries) -> dict:
    start = queries.select("process_start_time_seconds")
    return {
        "name": "Restarts",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": f"changes({start}[$__rate_interval]) > 0",
        "titleFormat": "pandod started",
        "textFormat": "{{instance}}",
    }


def _variables(queries: Queries) -> list[dict]:
    only_job = 'pando_build_info{job=~"$job"}'
    return [
        {
            "type": "datasource",
            "name": "datasource",
            "label": "Data source",
            "query": "prometheus",
            "refresh": 1,
        },
        _values_of("job", "Job", "pando_build_info"),
        _values_of("instance", "Instance", only_job),
        _values_of(
            "ns_class",
            "Namespace class",
            queries.of_all_classes().select("pando_prefix_query_tokens_total"),
        ),
    ]


def _values_of(label: str, title: str, series: str) -> dict:
    query = f"label_values({series}, {label})"
    return {
        "type": "query",
        "name": label,
        "label": title,
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"text": ["All"], "value": ["$__all"]},
    }
