"""The catalogue of metrics matches the served metrics and the documentation."""

import json
import subprocess
import sys

from metrics_load import load
from pandod_process import PAGE_TOKENS, REPOSITORY, binary
from prometheus_tools import prometheus_tool
from protocol_worker import protocol_worker

TOKENS = list(range(2 * PAGE_TOKENS))
MAX_SERIES = 2_400
SHOWN_CLASSES = 8


def catalogue() -> list[dict]:
    return json.loads(subprocess.check_output([binary(), "--print-metrics"]))


def test_the_documentation_is_what_the_catalogue_says():
    generator = REPOSITORY / "tools" / "metrics_docs.py"
    subprocess.run([sys.executable, generator, "--check", binary()], check=True)


def test_what_is_served_is_what_the_catalogue_says(started, tmp_path):
    # The learner and the tier have metrics of their own.
    tier = {"model": "m", "tier_disk": tmp_path / "tier", "tier_disk_bytes": "1MiB"}
    _, page = started(learn_reuse="yes", **tier)
    seen = page()
    families = {s.name for s in seen.series}
    for metric in catalogue():
        name = metric["name"]
        is_histogram = metric["type"] == "histogram"
        first = f"{name}_bucket" if is_histogram else name
        assert f"# TYPE {name} {metric['type']}\n" in seen.text
        assert f"# HELP {name} {metric['help']}\n" in seen.text
        for label in metric["labels"]:
            values = set(seen.by(label["name"], first))
            assert "any" in label or values == set(label["values"]), name
        if is_histogram:
            bounds = {float(le) for le in seen.by("le", first)}
            assert bounds == {*metric["buckets"], float("inf")}
            families -= {first, f"{name}_sum", f"{name}_count"}
        families -= {name}
    assert not families, "served, but not in the catalogue"


def test_every_series_is_there_from_the_start(started):
    pandod, page = started()
    before = [(s.name, s.labels) for s in page().series]
    with load(pandod.address):
        pass
    assert [(s.name, s.labels) for s in page().series] == before


def test_there_are_not_too_many_series(started, tmp_path):
    classes = [f"{{class: c{i}, extra_key: 'c{i}'}}" for i in range(50)]
    config = tmp_path / "pando.yaml"
    config.write_text(f"quotas: [{', '.join(classes)}]")
    pandod, page = started(config=config)
    with protocol_worker(pandod.address) as worker:
        for i in range(50):
            worker.cached(TOKENS, namespace={"extra_key": f"c{i}"})
        seen = page()
    assert len(seen.series) <= MAX_SERIES
    matches = seen.by("ns_class", "pando_prefix_match_requests_total")
    assert matches == {f"c{i}": 1 for i in range(SHOWN_CLASSES)} | {
        "other": 50 - SHOWN_CLASSES
    }


def test_promtool_finds_nothing_wrong(started):
    promtool = prometheus_tool("promtool")
    _, page = started()
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=page().text,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
