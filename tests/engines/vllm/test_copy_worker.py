"""The copy mode in vLLM's workers, without vLLM's model."""

import pytest
import torch
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
