"""Fixtures for a real pandod with a disk tier whose disk a test can stall."""

from collections.abc import Iterator

import pytest
from metrics_page import MetricsPage
from protocol_worker import protocol_worker
from stalled_disk import StalledDisk
from tiered import Tiered, stalled_tier


@pytest.fixture(params=["layer_first", "page_first"])
def tiered(start_pandod, tmp_path, request) -> Iterator[Tiered]:
    tiered = Tiered(start_pandod, tmp_path / "tier", layout_order=request.param)
    yield tiered
    with protocol_worker(tiered.pandod.address) as observer:
        assert observer.violations() == []
    page = MetricsPage(tiered.http)
    assert page.sum("pando_page_violations_total") == 0


@pytest.fixture(params=[True, False], ids=["io_uring", "plain_calls"])
def stallable(start_pandod, tmp_path, request) -> Iterator[tuple[Tiered, StalledDisk]]:
    """Yields a disk tier, and a way to stall its disk."""
    with stalled_tier(start_pandod, tmp_path, request.param) as made:
        yield made
