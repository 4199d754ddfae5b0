"""Fixtures for a pandod with metrics."""

import pytest
from metrics_page import MetricsPage, free_address


@pytest.fixture
def started(start_pandod):
    """Returns a function that starts a pandod and returns it with its metrics."""

    def start(**options: object):
        http = free_address()
        pandod = start_pandod(http=http, **options)
        return pandod, lambda: MetricsPage(http)

    return start
