"""Functions that tests of lanes share."""

import pytest
from metrics_page import MetricsPage
from pando_kv import _codec

needs_lane = pytest.mark.skipif(
    _codec.native is None, reason=f"{_codec.WHY_NOT_NATIVE}"
)


def handled(page: MetricsPage, method: str) -> dict[str, float]:
    """Answers by transport."""
    return page.by("transport", "grpc_server_handled_total", grpc_method=method)
