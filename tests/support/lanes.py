"""Functions that tests of lanes share."""

import pytest
from metrics_page import MetricsPage
from pando_kv._native_module import WHY_NOT_NATIVE, native

needs_lane = pytest.mark.skipif(native is None, reason=WHY_NOT_NATIVE)


def handled(page: MetricsPage, method: str) -> dict[str, float]:
    """Returns the number of the method's answers by transport."""
    return page.by("transport", "grpc_server_handled_total", grpc_method=method)
