"""Fixtures for a real pandod with a tier in its own memory."""

from collections.abc import Iterator

import pytest
from host_tiered import HostTiered
from metrics_page import MetricsPage
from protocol_worker import protocol_worker


@pytest.fixture(params=["layer_first", "page_first"])
def tiered(start_pandod, request) -> Iterator[HostTiered]:
    tiered = HostTiered(start_pandod, layout_order=request.param)
    yield tiered
    with protocol_worker(tiered.pandod.address) as observer:
        assert observer.violations() == []
    page = MetricsPage(tiered.http)
    assert page.sum("pando_page_violations_total") == 0


@pytest.fixture
def with_disk(start_pandod, tmp_path) -> HostTiered:
    return HostTiered(start_pandod, tmp_path / "tier")
