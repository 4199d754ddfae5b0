"""docs/operations.md: its sizes are pandod's, and its alerts and panels exist."""

import json
import re
import subprocess

import yaml
from pandod_process import REPOSITORY, binary, clean_environment

TEXT = (REPOSITORY / "docs" / "operations.md").read_text()
MONITORING = REPOSITORY / "deploy" / "monitoring"
SIZE = re.compile(
    r"^\| .* \| `(--layers .*)` \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE
)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def section(title: str) -> str:
    _, found, rest = TEXT.partition(f"\n### {title}\n")
    assert found, title
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_sizes_are_what_pandod_comes_to():
    rows = SIZE.findall(TEXT)
    assert len(rows) == 5
    for options, token_bytes, tokens in rows:
        printed = subprocess.check_output(
            [
                *(binary(), *options.split(), "--pool-bytes", "24GiB"),
                *("--pool-memory", "cuda", "--check-config"),
            ],
            env=clean_environment(),
            text=True,
        )
        pages = re.search(r"(\d+) pages of 16 tokens and (\d+) bytes", printed)
        assert int(pages[1]) * 16 == number(tokens), options
        assert int(pages[2]) == number(token_bytes) * 16, options


def test_every_alert_has_its_first_step_and_its_runbook():
    rules = yaml.safe_load((MONITORING / "rules" / "alerts.yaml").read_text())
    alerts = [rule["alert"] for group in rules["groups"] for rule in group["rules"]]
    rows = re.findall(
        r"^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| \S",
        section("When an alert fires"),
        re.M,
    )
    assert sorted(rows) == sorted((alert, alert) for alert in alerts)


def test_panels_that_are_named_are_on_the_dashboards():
    dashboards = [json.loads(f.read_text()) for f in MONITORING.rglob("pando-*.json")]
    known = {d["title"].removeprefix("Pando / ") for d in dashboards}
    known |= {panel["title"] for d in dashboards for panel in d["panels"]}
    named = set(
        re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", section("Reading the dashboards"))
    )
    assert len(named) > 15
    assert named <= known
