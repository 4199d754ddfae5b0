"""Copies between vLLM's blocks and Pando's pages, for all layers in few launches.

The layers of one memory lie evenly apart, so that one tensor has them all. What is
gathered goes through a scratch memory, which is made once: a device that is full has no
room for temporaries.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

_SCRATCH_BYTES = 64 << 20
_WORD = 8


class CopyLayers:
    """Blocks and pages, each layer of (rows, bytes), by their numbers. Owned by a
    worker, whose copies come one after the other on its device."""

    def __init__(self, blocks: list[torch.Tensor], pages: list[torch.Tensor]) -> None:
        self._blocks, self._pages = _in_words(*_in_few(blocks, pages))
        layers, rows, words = self._blocks[0].shape
        row_bytes = layers * words * self._blocks[0].element_size()
        self._rows = max(1, min(rows, _SCRATCH_BYTES // row_bytes))
        self._scratch = self._blocks[0].new_empty(self._rows * layers * words)

    def load(self, page_ids: Sequence[int], block_ids: Sequence[int]) -> None:
        self._copy(self._pages, page_ids, self._blocks, block_ids)

    def save(self, page_ids: Sequence[int], block_ids: Sequence[int]) -> None:
        self._copy(self._blocks, block_ids, self._pages, page_ids)

    def _copy(
        self,
        sources: list[torch.Tensor],
        from_ids: Sequence[int],
        targets: list[torch.Tensor],
        to_ids: Sequence[int],
    ) -> None:
        both = _on(sources[0].device, [from_ids, to_ids])
        for begin in range(0, both.shape[1], self._rows):
            from_rows, to_rows = both[:, begin : begin + self._rows]
            for source, target in zip(sources, targets, strict=True):
                layers, _, words = source.shape
                shape = (layers, from_rows.numel(), words)
                gathered = self._scratch[: shape[0] * shape[1] * words].view(shape)
                torch.index_select(source, 1, from_rows, out=gathered)
                target.index_copy_(1, to_rows, gathered)


def _on(device: torch.device, ids: Sequence[Sequence[int]]) -> torch.Tensor:
    """A GPU takes them from pinned memory in its own time: nobody waits for it."""
    is_pinned = device.type == "cuda"
    found = torch.tensor(ids, dtype=torch.int64, pin_memory=is_pinned)
    return found.to(device, non_blocking=True)


def _in_few(*sides: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Each side as tensors of (layers, rows, bytes): one, where that can be."""
    stacks = [_stacked(layers) for layers in sides]
    if all(stack is not None for stack in stacks):
        return [[stack] for stack in stacks if stack is not None]
    return [[layer.unsqueeze(0) for layer in layers] for layers in sides]


def _stacked(layers: list[torch.Tensor]) -> torch.Tensor | None:
    """All of them as one tensor over the same memory; None if they do not lie so."""
    first = layers[0]
    begins = [layer.storage_offset() for layer in layers]
    step = begins[1] - begins[0] if len(begins) > 1 else 0
    is_one_memory = {layer.untyped_storage().data_ptr() for layer in layers} == {
        first.untyped_storage().data_ptr()
    }
    is_even = begins == [begins[0] + n * step for n in range(len(begins))]
    is_alike = {layer.stride() for layer in layers} == {first.stride()}
    if not (is_one_memory and is_even and is_alike) or step < 0:
        return None
    return first.as_strided(
        (len(layers), *first.shape), (step, *first.stride()), begins[0]
    )


def _in_words(*sides: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Bytes in the widest pieces that all of them consist of: a kernel moves one of
    them at a time."""
    if not all(_is_of_words(each) for side in sides for each in side):
        return list(sides)
    return [[each.view(torch.int64) for each in side] for side in sides]


def _is_of_words(layers: torch.Tensor) -> bool:
    *strides, last = layers.stride()
    places = [*strides, layers.shape[-1], layers.data_ptr(), layers.storage_offset()]
    return last == 1 and all(place % _WORD == 0 for place in places)
