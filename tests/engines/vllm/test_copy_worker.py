"""The copy mode in vLLM's workers, without vLLM's model."""

import contextlib

import pytest
import torch
from pando_kv.vllm.copy_stream import stream_of
from pando_kv.vllm.copy_worker import format_of


def test_a_format_tells_element_types_and_shapes_apart():
    formats = {
        format_of(torch.zeros(shape, dtype=dtype))
        for shape in ((2, 4, 8), (2, 8, 4))
        for dtype in (torch.float32, torch.bfloat16)
    }
    assert len(formats) == 4


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float8_e4m3fn])
def test_quantized_kv_must_state_its_format(dtype):
    with pytest.raises(ValueError, match="pando_page_format"):
        format_of(torch.zeros((2, 4), dtype=dtype))


class NamedStream:
    """What is asked of a stream of a GPU, which is not there."""

    def __init__(self, name, said):
        self.name = name
        self.said = said

    def wait_stream(self, other):
        self.said.append(f"{self.name} after {other.name}")

    def record_event(self):
        self.said.append(f"event of {self.name}")
        return "event"


@pytest.mark.parametrize(
    ("is_own", "expected"),
    [
        (False, ["copies on steps", "event of steps"]),
        (True, ["own after steps", "copies on own", "event of own"]),
    ],
)
def test_copies_of_a_gpu_come_after_the_steps_that_are_queued(
    monkeypatch, is_own, expected
):
    said = []
    current = [NamedStream("steps", said)]

    @contextlib.contextmanager
    def on(stream):
        current.append(stream)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "Stream", lambda device: NamedStream("own", said))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", on)
    stream = stream_of(torch.device("cuda"), is_own)
    event = stream.queue(lambda: said.append(f"copies on {current[-1].name}"))
    assert (said, event) == (expected, "event")
