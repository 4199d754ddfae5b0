"""A pandod under load, watched by a real Prometheus with the shipped rules."""

import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from eventually import eventually
from metrics_page import free_address
from monitored_traffic import OPTIONS, QUOTAS, traffic
from mover_process import MoverProcess
from pandod_process import REPOSITORY, serving
from prometheus_tools import Prometheus, scraping

MONITORING = REPOSITORY / "deploy" / "monitoring"
# The number of scrapes while the traffic runs.
SCRAPES = 6


@dataclass(frozen=True)
class Watched:
    prometheus: Prometheus
    instance: str
    start: float
    end: float


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("monitoring")
    http = free_address()
    quotas = folder / "pando.yaml"
    quotas.write_text(QUOTAS)
    config = write_config(folder, http)
    tcp = free_address()
    shared = folder / "shared"
    shared.mkdir(mode=0o700)
    options = {"http": http, "tcp": tcp, "tcp_insecure": "yes", "config": quotas}
    options |= {"tier_shared": f"file://{shared}", "model": "a-model"}
    options["block_tier_shared"] = options["tier_shared"]
    options["mover_socket"] = folder / "mover.sock"
    with (
        serving(folder, **options, **OPTIONS) as pandod,
        closing(MoverProcess(options["mover_socket"], folder / "mover.log")) as mover,
        scraping(config, folder) as prometheus,
    ):
        mover.start_and_copy()
        # From now on the shared tier fails.
        shutil.rmtree(shared)
        wait_for_scrapes(prometheus, 1)
        start = time.time()
        with traffic(pandod, tcp, folder) as load:
            while scrapes(prometheus) <= SCRAPES:
                load.round()
        wait_for_scrapes(prometheus, scrapes(prometheus) + 2)
        yield Watched(prometheus, http, start, time.time())


def write_config(folder: Path, target: str) -> Path:
    """Writes the shipped configuration with this target and a scrape every second."""
    config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    config["rule_files"] = [str(MONITORING / path) for path in config["rule_files"]]
    path = folder / "prometheus.yaml"
    path.write_text(yaml.dump(config))
    return path


def scrapes(prometheus: Prometheus) -> int:
    """Returns how often pandod has answered."""
    found = prometheus.query("sum_over_time(up[1h])")
    return int(found[0]["value"][1]) if found else 0


def wait_for_scrapes(prometheus: Prometheus, number: int) -> None:
    eventually(lambda: scrapes(prometheus) >= number)
