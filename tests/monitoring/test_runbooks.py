"""Runbooks: one for each alert, which names only existing panels, metrics and verbs."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from dashboards import ALERTS, DASHBOARDS, panels
from pandod_process import REPOSITORY, binary

RUNBOOKS = REPOSITORY / "docs" / "runbooks"

EMPHASIS = re.compile(r"\*([^*]+)\*")
METRIC = re.compile(r"\b(?:pando|grpc_server|process)_\w+")
OPTION = re.compile(r"--[a-z][a-z-]+")
VERB = re.compile(r"`pandoctl ([a-z]+)([^`]*)`")
LINK = re.compile(r"\]\(([^)]+)\)")
OTHERS_COMMANDS = re.compile(r"`(?:kubectl|pandoctl)[^`]*`")

each_alert = pytest.mark.parametrize("name", ALERTS)


def text(name: str) -> str:
    """Returns the runbook's text, with spaces for line breaks."""
    return " ".join((RUNBOOKS / f"{name}.md").read_text().split())


def shown() -> set[str]:
    """Returns the titles that Grafana shows."""
    words: set[str] = set()
    for dashboard in DASHBOARDS.values():
        words.add(dashboard["title"].removeprefix("Pando / "))
        words |= {a["name"] for a in dashboard["annotations"]["list"]}
        for panel in panels(dashboard):
            words |= {panel["title"], *(t["legendFormat"] for t in panel["targets"])}
    return words


def says(program: str, *arguments: str) -> str:
    command = [binary().with_name(program), *arguments]
    return subprocess.check_output(command, text=True)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert():
    pages = {path.stem for path in RUNBOOKS.glob("Pando*.md")}
    assert pages == set(ALERTS)


def test_runbooks_are_links_where_the_operator_says_that_they_are(tmp_path):
    """Runs the generator in a copy, because it writes to its own repository."""
    copy = tmp_path / "repository"
    for folder in ("tools/monitoring", "deploy", "docs"):
        shutil.copytree(REPOSITORY / folder, copy / folder)
    generator = copy / "tools" / "monitoring" / "generate.py"
    base = "https://operators.example/pando/"
    subprocess.run(
        [sys.executable, generator, "--runbooks", base, binary()], check=True
    )
    for file in (
        "deploy/monitoring/rules/alerts.yaml",
        "deploy/kubernetes/components/monitoring/prometheusrule.yaml",
    ):
        links = re.findall(r"runbook_url: (.*)", (copy / file).read_text())
        assert links == [f"{base}{name}.md" for name in ALERTS]


@each_alert
def test_it_says_what_to_do(name):
    page = (RUNBOOKS / f"{name}.md").read_text()
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    assert headings == [name, "What it means", "Find the cause", "What to do"]


@each_alert
def test_the_panels_and_pages_that_it_names_are_there(name):
    assert set(EMPHASIS.findall(text(name))) <= shown()
    for page in LINK.findall(text(name)):
        assert (RUNBOOKS / page.partition("#")[0]).exists(), page


@each_alert
def test_the_metrics_and_options_that_it_names_are_pandods(name):
    metrics = json.loads(says("pandod", "--print-metrics"))
    assert set(METRIC.findall(text(name))) <= {metric["name"] for metric in metrics}
    options = set(OPTION.findall(says("pandod", "--help")))
    assert set(OPTION.findall(OTHERS_COMMANDS.sub("", text(name)))) <= options


@each_alert
def test_the_verbs_of_pandoctl_that_it_names_are_there(name):
    for verb, arguments in VERB.findall(text(name)):
        options = set(OPTION.findall(says("pandoctl", verb, "--help")))
        assert set(OPTION.findall(arguments)) <= options
