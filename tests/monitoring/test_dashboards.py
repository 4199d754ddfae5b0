"""The dashboards' files, with all that Grafana and its users need."""

import itertools
import re

import pytest
import yaml
from dashboards import (
    DASHBOARDS,
    MONITORING,
    panel_queries,
    panels,
    value_variables,
)

VARIABLES = ["datasource", "job", "instance", "ns_class"]
# Variables for numbers that only the reader knows.
INPUTS = {"pando-overview": ["prefill_speed"]}
GRID_WIDTH = 24
RATE = re.compile(r"(?:rate|increase|changes)\([^\[]*\[([^\]]*)\]")
GROUPING = re.compile(r"by \([^)]*\)")
SELECTOR = re.compile(r"\b(?:pando|grpc_server|process)_\w+(\{[^}]*\})?")

each_dashboard = pytest.mark.parametrize(
    "dashboard", DASHBOARDS.values(), ids=DASHBOARDS
)
each_query = pytest.mark.parametrize("query", panel_queries(), ids=str)


def test_there_are_all_of_them():
    assert set(DASHBOARDS) == {
        "pando-overview",
        "pando-eviction",
        "pando-blocks",
        "pando-sessions",
        "pando-calls",
        "pando-fleet",
    }
    titles = {dashboard["title"] for dashboard in DASHBOARDS.values()}
    assert len(titles) == len(DASHBOARDS)


@each_dashboard
def test_it_is_one_that_grafana_takes_from_a_file(dashboard):
    assert DASHBOARDS[dashboard["uid"]] is dashboard
    assert dashboard["title"].startswith("Pando / ")
    assert dashboard["description"]
    assert dashboard["schemaVersion"] >= 39
    assert dashboard["editable"] is False
    # Grafana chooses the id.
    assert "id" not in dashboard


@each_dashboard
def test_panels_have_ids_of_their_own(dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


@each_dashboard
def test_panels_lie_on_the_grid_and_not_on_each_other(dashboard):
    cells = [
        (x, y)
        for panel in dashboard["panels"]
        for x, y in itertools.product(
            range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"]),
            range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"]),
        )
    ]
    assert len(set(cells)) == len(cells)
    assert all(0 <= x < GRID_WIDTH for x, _ in cells)


@each_dashboard
def test_every_panel_says_what_it_shows(dashboard):
    titles = [panel["title"] for panel in panels(dashboard)]
    for panel in panels(dashboard):
        what, _, metrics = panel["description"].partition("\n\n")
        assert what.endswith("."), panel["title"]
        assert metrics.startswith("- `"), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert panel["targets"], panel["title"]
    for row in (panel for panel in dashboard["panels"] if panel["type"] == "row"):
        assert row["title"]
    assert all(title[0].isupper() for title in titles)


@each_dashboard
def test_it_has_the_variables(dashboard):
    variables = dashboard["templating"]["list"]
    names = [variable["name"] for variable in variables]
    assert names == VARIABLES + INPUTS.get(dashboard["uid"], [])
    for variable in value_variables(dashboard):
        assert variable["multi"] and variable["includeAll"]


@each_dashboard
def test_a_number_that_it_asks_the_reader_for_has_a_default_and_is_used(dashboard):
    exprs = [query.target["expr"] for query in panel_queries()]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "textbox":
            assert float(variable["query"]) == float(variable["current"]["value"])
            assert any(f"${variable['name']}" in expr for expr in exprs)


@pytest.mark.parametrize(
    ("dashboard", "title", "colors"),
    [
        ("pando-overview", "Pool that cannot be evicted", "green orange red"),
        ("pando-overview", "Draining", "green orange"),
        ("pando-eviction", "Unused before eviction", "red orange green"),
        ("pando-eviction", "Share of reservations refused", "green orange red"),
        ("pando-calls", "Failed through no fault of the caller", "green orange red"),
        ("pando-calls", "Found by self-checks", "green red"),
        ("pando-sessions", "Oldest lock", "green orange red"),
    ],
)
def test_what_is_bad_is_red(dashboard, title, colors):
    [panel, *_] = [p for p in panels(DASHBOARDS[dashboard]) if p["title"] == title]
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert " ".join(step["color"] for step in steps) == colors
    [first, *others] = [step["value"] for step in steps]
    assert first is None
    assert others == sorted(others)


@each_dashboard
def test_everything_comes_from_the_chosen_datasource(dashboard):
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    users = [
        *panels(dashboard),
        *(target for panel in panels(dashboard) for target in panel["targets"]),
        *dashboard["annotations"]["list"],
        *value_variables(dashboard),
    ]
    assert all(user["datasource"] == chosen for user in users)


@each_query
def test_every_series_is_narrowed_down_by_the_variables(query):
    expr = GROUPING.sub("", query.target["expr"])
    assert SELECTOR.search(expr)
    for series in SELECTOR.finditer(expr):
        assert '{job=~"$job",instance=~"$instance"' in series[0]
    if "ns_class" in query.labels:
        assert 'ns_class=~"$ns_class"' in expr


@each_query
def test_rates_are_over_grafanas_interval_or_the_time_shown(query):
    windows = set(RATE.findall(query.target["expr"]))
    assert windows <= {"$__rate_interval", "$__range"}


@each_query
def test_lines_of_one_panel_have_names_of_their_own(query):
    legends = [
        target["legendFormat"]
        for target in query.panel["targets"]
        if target["legendFormat"] != "__auto"
    ]
    assert len(set(legends)) == len(legends)


# The tests below check how Prometheus and Grafana are provisioned.


def shipped(path: str) -> dict:
    return yaml.safe_load((MONITORING / path).read_text())


def mounts(service: dict) -> dict[str, str]:
    """Returns the files of deploy/monitoring by their paths in the container."""
    volumes = (volume.split(":") for volume in service["volumes"])
    return {inside[0]: outside for outside, *inside in volumes}


def test_the_compose_file_mounts_what_the_programs_are_told_to_read():
    services = shipped("compose.yaml")["services"]
    prometheus, grafana = mounts(services["prometheus"]), mounts(services["grafana"])
    for outside in [*prometheus.values(), *grafana.values()]:
        if outside.startswith("."):
            assert (MONITORING / outside).exists(), outside
    config = prometheus["/etc/pando/prometheus.yaml"]
    assert (
        "--config.file=/etc/pando/prometheus.yaml" in services["prometheus"]["command"]
    )
    for pattern in shipped(config)["rule_files"]:
        folder = pattern.partition("/")[0]
        assert prometheus[f"/etc/pando/{folder}"] == f"./{folder}"
    provider = shipped("grafana/provisioning/dashboards/pando.yaml")["providers"][0]
    assert grafana[provider["options"]["path"]] == "./grafana/dashboards"
    home = services["grafana"]["environment"][
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"
    ]
    assert home == provider["options"]["path"] + "/pando-overview.json"


def test_the_datasource_is_the_prometheus_of_the_compose_file():
    datasource = shipped("grafana/provisioning/datasources/prometheus.yaml")
    [only] = datasource["datasources"]
    address = only["url"].removeprefix("http://")
    command = shipped("compose.yaml")["services"]["prometheus"]["command"]
    assert f"--web.listen-address={address}" in command
    scraped = shipped("prometheus.yaml")["global"]["scrape_interval"]
    assert only["jsonData"]["timeInterval"] == scraped
