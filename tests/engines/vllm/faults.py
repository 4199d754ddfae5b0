"""Makes the copies of a plan fail."""

import contextlib

import pytest
import torch


@contextlib.contextmanager
def another_pool(plan):
    """That of the load is no more."""
    plan.epoch += 1
    yield
    plan.epoch -= 1


@contextlib.contextmanager
def device_without_memory(plan):
    def fail(*_, **__):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "index_select", fail)
        yield
