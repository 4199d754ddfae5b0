"""Fixtures for a real pandod whose host-memory pool a real pando-mover copies."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from metrics_page import MetricsPage
from moved import DISK, HOST, Moved
from protocol_worker import protocol_worker


@pytest.fixture(params=[HOST, DISK], ids=["host", "disk"])
def without_mover(start_pandod, tmp_path, request) -> Iterator[Moved]:
    moved = Moved(start_pandod, tmp_path, **request.param)
    with closing(moved.mover):
        yield moved
        with protocol_worker(moved.pandod.address) as observer:
            assert observer.violations() == []
        page = MetricsPage(moved.http)
        assert page.sum("pando_page_violations_total") == 0


@pytest.fixture
def moved(without_mover) -> Moved:
    without_mover.start_mover()
    return without_mover
