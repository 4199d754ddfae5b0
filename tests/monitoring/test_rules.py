"""The results of recorded series and alerts for given samples, by promtool."""

from pathlib import Path

import pytest
import yaml
from dashboards import ALERTS, MONITORING, RECORDED
from prometheus_tools import promtool

HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "alert_cases.yaml").read_text())
RECORDED_CASES = yaml.safe_load((HERE / "recorded_cases.yaml").read_text())
PROMETHEUS_URL = "https://prometheus.example"
RULE_FILES = sorted((MONITORING / "rules").glob("*.yaml"))

each_alert = pytest.mark.parametrize("name", ALERTS)


def check(folder: Path, test: dict) -> None:
    """Makes promtool check the rules' results for samples."""
    path = folder / "test.yaml"
    text = yaml.dump(
        {
            "rule_files": [str(path) for path in RULE_FILES],
            "evaluation_interval": "1m",
            "group_eval_order": ["pando.recorded", "pando.alerts"],
            "tests": [{"interval": "1m", "external_url": PROMETHEUS_URL} | test],
        }
    )
    path.write_text(text)
    promtool("test", "rules", path)


def samples(instance: str, series: dict[str, str]) -> list[dict]:
    return [
        {"series": of_instance(instance, name), "values": values}
        for name, values in series.items()
    ]


def of_instance(instance: str, series: str) -> str:
    name, _, labels = series.rstrip("}").partition("{")
    return f'{name}{{job="pando",instance="{instance}",{labels}}}'.replace(",}", "}")


def annotations(name: str, description: str) -> dict[str, str]:
    """Returns the annotations that people see, with a complete link to the runbook."""
    return ALERTS[name]["annotations"] | {
        "description": description,
        "runbook_url": f"{PROMETHEUS_URL}/user/runbooks/{name}.md",
    }


def test_promtool_finds_nothing_wrong_with_the_files():
    promtool("check", "rules", *RULE_FILES)
    promtool("check", "config", MONITORING / "prometheus.yaml")


def test_there_is_a_case_for_everything():
    assert list(CASES) == list(ALERTS)
    assert list(RECORDED_CASES["recorded"]) == list(RECORDED)


@each_alert
def test_it_fires_for_the_sick_and_is_quiet_before_and_for_the_well(tmp_path, name):
    case, rule = CASES[name], ALERTS[name]
    own_labels = {"job": "pando", "instance": "sick"} | case.get("labels", {})
    fired = {
        "exp_labels": rule["labels"] | own_labels,
        "exp_annotations": annotations(name, f"sick {case['says']}"),
    }
    check(
        tmp_path,
        {
            "input_series": samples("sick", case["sick"])
            + samples("well", case["well"]),
            "alert_rule_test": [
                {"alertname": name, "eval_time": case["quiet_at"], "exp_alerts": []},
                {
                    "alertname": name,
                    "eval_time": case["fires_at"],
                    "exp_alerts": [fired],
                },
            ],
        },
    )


def test_pando_down_fires_when_no_target_is_left(tmp_path):
    rule = ALERTS["PandoDown"]
    gone = {
        "exp_labels": rule["labels"],
        "exp_annotations": annotations(
            "PandoDown",
            "Prometheus has had no pandod among its targets for 2 minutes.",
        ),
    }

    def at(time: str, alerts: list[dict]) -> dict:
        return {"alertname": "PandoDown", "eval_time": time, "exp_alerts": alerts}

    check(
        tmp_path,
        {
            # The target is well to the last; then Prometheus loses it from its targets.
            "input_series": samples("removed", {"up": "1x5 _x20"})
            + [{"series": 'up{job="others",instance="well"}', "values": "1x30"}],
            "alert_rule_test": [at("6m", []), at("20m", [gone])],
        },
    )


def test_what_is_recorded_is_what_the_samples_come_to(tmp_path):
    check(
        tmp_path,
        {
            "input_series": samples("one", RECORDED_CASES["series"]),
            "promql_expr_test": [
                {
                    # Rounding removes the errors of floating point.
                    "expr": f"round({name} * 1e9)",
                    "eval_time": "70m",
                    "exp_samples": [
                        {
                            "labels": of_instance("one", f"{{{labels}}}"),
                            "value": round(value * 1e9),
                        }
                        for labels, value in expected.items()
                    ],
                }
                for name, expected in RECORDED_CASES["recorded"].items()
            ],
        },
    )


@each_alert
def test_an_alert_is_one_that_somebody_can_act_on(name):
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "{{" not in rule["annotations"]["summary"]
    assert "$labels.instance" in rule["annotations"]["description"]
