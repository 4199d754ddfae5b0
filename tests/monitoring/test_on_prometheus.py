"""Queries of every panel and rule to a Prometheus that scrapes a pandod under load."""

import math
import re
import subprocess
import sys

import pytest
from dashboards import (
    ALERTS,
    DASHBOARDS,
    RECORDED,
    PanelQuery,
    panel_queries,
    value_variables,
)
from eventually import eventually
from pandod_process import REPOSITORY, binary

# Grafana asks for four times the scrape interval, which is one second here.
RATE_INTERVAL = "4s"

# Queries that return only zeros, because their event must not happen under load or has
# no source here.
ZERO = {
    "pando-calls: Failed through no fault of the caller A",
    "pando-calls: Found by self-checks A",
    "pando-calls: Violated invariants A",
    "pando-sessions: Events that watchers missed A",
    "pando-fleet: Dropped frames A",
    # There is no disk tier of blocks.
    "pando-blocks: Room on disk A",
    "pando-blocks: Room on disk B",
    "pando-blocks: Copied A",
    # There is no disk, and the shared folder was taken away.
    "pando-eviction: Copies held A",
    "pando-eviction: Copies held B",
    "pando-eviction: Bytes stored and loaded A",
    "pando-overview: Draining A",
    "pando-fleet: Servers L",
}
# Alerts that compare with values from before the test began.
NEEDS_A_PAST = {"PandoHitRatioDrop"}

CONDITION = re.compile(r"\n(?:==|<|>) [\d.]+$")
VARIABLE = re.compile(r"label_values\((.*), (\w+)\)$")

each_dashboard = pytest.mark.parametrize(
    "dashboard", DASHBOARDS.values(), ids=DASHBOARDS
)
each_query = pytest.mark.parametrize("query", panel_queries(), ids=str)


def filled_in(watched, expr: str) -> str:
    """Returns the expression with the values that Grafana gives the variables."""
    values = {
        "$__rate_interval": RATE_INTERVAL,
        "$__range": f"{math.ceil(watched.end - watched.start)}s",
        "$job": ".+",
        "$instance": re.escape(watched.instance).replace("\\", "\\\\"),
        "$ns_class": ".+",
        "$prefill_speed": "10000",
    }
    for name, value in values.items():
        expr = expr.replace(name, value)
    assert "$" not in expr, "a variable that is not known"
    return expr


def lines(watched, query: PanelQuery) -> list[dict]:
    expr = filled_in(watched, query.target["expr"])
    return watched.prometheus.query_range(expr, watched.start, watched.end)


def values(line: dict) -> list[float]:
    return [float(value) for _, value in line["values"]]


def test_the_files_are_what_the_generator_makes_of_the_metrics():
    generator = REPOSITORY / "tools" / "monitoring" / "generate.py"
    subprocess.run([sys.executable, generator, "--check", binary()], check=True)


@each_query
def test_every_panel_has_something_to_show(watched, query):
    found = lines(watched, query)
    assert found
    for line in found:
        assert all(math.isfinite(value) for value in values(line))
        assert query.labels <= line["metric"].keys()
    shown = {tuple(line["metric"][label] for label in query.labels) for line in found}
    assert len(shown) == len(found), "lines with the same name"
    assert any(any(values(line)) for line in found) == (str(query) not in ZERO)


@each_dashboard
def test_variables_offer_what_there_is(watched, dashboard):
    offered = {}
    for variable in value_variables(dashboard):
        series, label = VARIABLE.match(variable["query"]["query"]).groups()
        offered[variable["name"]] = watched.prometheus.get(
            f"label/{label}/values", **{"match[]": filled_in(watched, series)}
        )
    assert offered == {
        "job": ["pando"],
        "instance": [watched.instance],
        "ns_class": ["gold", "other"],
    }


@each_dashboard
def test_annotations_can_be_asked_for(watched, dashboard):
    for annotation in dashboard["annotations"]["list"]:
        expr = filled_in(watched, annotation["expr"])
        watched.prometheus.query_range(expr, watched.start, watched.end)


def test_prometheus_serves_the_runbooks_to_which_its_alerts_link(watched):
    for name, rule in ALERTS.items():
        link = rule["annotations"]["runbook_url"]
        page = link.removeprefix("{{ $externalURL }}/")
        assert page != link
        assert watched.prometheus.page(page).startswith(f"# {name}\n")


def test_every_rule_is_evaluated_without_error(watched):
    def evaluated() -> list[dict]:
        groups = watched.prometheus.get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    eventually(lambda: all(rule["health"] != "unknown" for rule in evaluated()))
    assert {rule["name"] for rule in evaluated()} == {*RECORDED, *ALERTS}
    for rule in evaluated():
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule["name"]


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_series_is_there(watched, name):
    eventually(lambda: watched.prometheus.query(name) != [])
    for series in watched.prometheus.query(name):
        labels = name.partition(":")[0]
        for label in re.findall("job|instance|ns_class|grpc_method", labels):
            assert series["metric"][label]
        assert math.isfinite(float(series["value"][1]))


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_something_to_compare(watched, name):
    value = CONDITION.sub("", ALERTS[name]["expr"])
    assert value != ALERTS[name]["expr"]
    if name in NEEDS_A_PAST:
        assert watched.prometheus.query(value) == []
        return
    eventually(lambda: watched.prometheus.query(value) != [])
    for series in watched.prometheus.query(value):
        assert series["metric"]["job"] and series["metric"]["instance"]
        assert math.isfinite(float(series["value"][1]))
