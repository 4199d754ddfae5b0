"""Refusals of an engine that computes on another device than the pool is on."""

import pytest
import torch
from pando_kv._same_device import require_same_device


@pytest.mark.parametrize(
    ("of_pool", "of_engine"), [("cpu", "cpu"), ("cuda:1", "cuda:1"), ("cuda:1", "cuda")]
)
def test_the_same_device_is_taken(of_pool, of_engine):
    require_same_device(torch.device(of_pool), torch.device(of_engine))


@pytest.mark.parametrize(
    ("of_pool", "of_engine"),
    [("cpu", "cuda"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")],
)
def test_another_device_is_refused(of_pool, of_engine):
    said = f"memory of {of_pool}, and the engine computes on {of_engine}; both"
    with pytest.raises(ValueError, match=said):
        require_same_device(torch.device(of_pool), torch.device(of_engine))
