"""A pandod with metrics."""

import pytest
from metrics_page import MetricsPage, free_address


@pytest.fixture
def started(start_pandod):
    """Starts a pandod with metrics: it, and a function that reads them."""

    def start(**options: object):
        http = free_address()
        pandod = start_pandod(http=http, **options)
        return pandod, lambda: MetricsPage(http)

    return start
