"""The order of copies on a stream of their own, on streams that record it: there is no
GPU here."""

from contextlib import contextmanager

import pytest
import torch
from pando_kv.vllm.copy_plan import Copy, CopyPlan
from pando_kv.vllm.copy_stream import stream_of
from pando_kv.vllm.copy_worker import CopyWorker, StatedPages

DEVICE = torch.device("cuda", 0)


class Stream:
    """The work that is queued on it, and after what each comes."""

    def __init__(self, device=None):
        self.before = frozenset()  # what all that is queued next comes after

    def run(self, work):
        after, self.before = self.before, self.before | {work}
        return after

    def record_event(self):
        return self.before

    def wait_event(self, event):
        self.before |= event

    def wait_stream(self, other):
        self.before |= other.before


@pytest.fixture
def streams(monkeypatch):
    """The stream of the steps, and the one on which copies are queued."""
    steps = Stream()
    current = [steps]

    @contextmanager
    def stream(which):
        current.append(which)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: steps)
    after = {}

    def queue(work):
        after[work] = current[-1].run(work)

    return steps, queue, after


def test_a_load_comes_after_the_steps_before_the_one_that_has_begun(streams):
    """vLLM starts loads that requests wait for once the step of others is queued."""
    steps, queue, after = streams
    copies = stream_of(DEVICE, is_own=True)
    copies.begin_step()
    steps.run("step 1")
    copies.save(lambda: queue("save 1"))
    copies.begin_step()
    steps.run("step 2")
    copies.load(lambda: queue("load 2"))
    copies.save(lambda: queue("save 2"))
    assert after["save 1"] == {"step 1"}
    assert after["load 2"] == {"step 1", "save 1"}
    assert after["save 2"] == {"step 1", "save 1", "step 2", "load 2"}


def test_a_worker_says_where_a_step_begins(streams, monkeypatch):
    """Else loads would come after no step, and write to what steps still read."""
    steps, queue, after = streams
    worker = CopyWorker(None, 0, StatedPages("", "", ""), 8, is_async=True)
    worker._stream = stream_of(DEVICE, is_own=True)
    monkeypatch.setattr(worker, "_open_again", lambda: None)
    monkeypatch.setattr(worker, "_is_ready", lambda plan: True)
    monkeypatch.setattr(worker, "_copies", lambda *_: lambda: queue("load"))
    steps.run("step 1")
    plan = CopyPlan(epoch=1, session_id=1)
    plan.loads = {1: Copy("a", [3], [3])}
    worker.begin(plan)
    steps.run("step 2")
    worker.load(plan)
    assert after["load"] == {"step 1"}


def test_without_a_stream_of_their_own_copies_are_queued_among_the_steps(streams):
    steps, queue, after = streams
    copies = stream_of(DEVICE, is_own=False)
    copies.begin_step()
    copies.load(lambda: queue("load"))
    steps.run("step")
    event = copies.save(lambda: queue("save"))
    assert after == {"load": frozenset(), "save": {"load", "step"}}
    assert event == {"load", "step", "save"}
