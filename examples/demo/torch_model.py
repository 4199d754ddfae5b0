"""The demo's transformer in bfloat16 on a torch device, over pages of torch tensors.

As in model.py, shapes follow from a row's absolute position alone. Equal shapes use
equal kernels, so logits are bit-equal with and without the cache. This module needs
torch.
"""

import numpy as np
import torch
from model import Layer, ModelConfig, Tokens, Transformer
from paged_kv import Floats, KvPages, PageIds


class TorchPagedKv:
    """A PagedKv of torch tensors, over the pool's own memory or a process's."""

    def __init__(self, pages: KvPages, layers: int, block_table: PageIds) -> None:
        self._keys = [pages.keys(layer) for layer in range(layers)]
        self._values = [pages.values(layer) for layer in range(layers)]
        self.block_table = block_table

    def write(
        self, layer: int, start: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        block, offset = divmod(start, self._keys[layer].shape[1])
        page = int(self.block_table[block])
        self._keys[layer][page, offset : offset + len(keys)] = keys
        self._values[layer][page, offset : offset + len(values)] = values

    def load(self, layer: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        page_tokens = self._keys[layer].shape[1]
        ids = self.block_table[: -(-end // page_tokens)].astype(np.int64)
        pages = torch.from_numpy(ids).to(self._keys[layer].device)
        keys, values = self._keys[layer][pages], self._values[layer][pages]
        keys, values = keys.flatten(0, 1), values.flatten(0, 1)
        keys[end:] = 0
        values[end:] = 0
        return keys, values


class TorchPages:
    """Pages of this process alone, which start as NaN, as those of PrivatePages do."""

    def __init__(self, config: ModelConfig, pages: int) -> None:
        rows = (pages, config.page_tokens, config.kv_heads, config.head_size)
        self._kv = torch.full(
            (2, config.layers, *rows),
            torch.nan,
            dtype=torch.bfloat16,
            device=config.device,
        )

    def keys(self, layer: int) -> torch.Tensor:
        return self._kv[0, layer]

    def values(self, layer: int) -> torch.Tensor:
        return self._kv[1, layer]


class TorchTransformer(Transformer):
    """The transformer with its weights in bfloat16."""

    @torch.inference_mode()
    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._layers = [
            Layer(*(self._tensor(weight) for weight in vars(layer).values()))
            for layer in self._layers
        ]
        self._embedding = self._tensor(self._embedding)
        self._unembedding = self._tensor(self._unembedding)
        self._final_norm = self._tensor(self._final_norm)
        self._last_page_mask = self._tensor(self._last_page_mask).float()
        self._warm_up()

    @torch.inference_mode()
    def step(self, tokens: Tokens, start: int, kv: TorchPagedKv) -> Floats:
        config = self.config
        offset = start % config.page_tokens
        rows = slice(offset, offset + len(tokens))
        x = torch.zeros(
            (config.page_tokens, config.width),
            dtype=torch.bfloat16,
            device=config.device,
        )
        ids = torch.from_numpy(tokens.astype(np.int64)).to(config.device)
        x[rows] = self._embedding[ids]
        cos, sin = (self._tensor(part) for part in self._angles(start - offset))
        for index, layer in enumerate(self._layers):
            queries, keys, values = self._project(_norm(x, layer.attention_norm), layer)
            kv.write(index, start, _rotate(keys, cos, sin)[rows], values[rows])
            loaded = kv.load(index, start + len(tokens))
            x = x + self._attend(_rotate(queries, cos, sin), *loaded) @ layer.output
            x = x + self._mlp(_norm(x, layer.mlp_norm), layer)
        self.rows_computed += len(tokens)
        logits = (_norm(x, self._final_norm) @ self._unembedding)[rows]
        # The copy to the host waits for the device, so the writes to the pages are done
        # as well.
        return logits.float().cpu().numpy()

    def _attend(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        config = self.config
        grouped = queries.unflatten(1, (config.kv_heads, -1)).permute(1, 2, 0, 3)
        scores = grouped.flatten(1, 2) @ keys.permute(1, 2, 0)
        scores = scores.float() * config.head_size**-0.5
        scores[:, :, -config.page_tokens :] += self._last_page_mask
        mixed = scores.softmax(dim=-1).bfloat16() @ values.transpose(0, 1)
        mixed = mixed.unflatten(1, (-1, config.page_tokens)).permute(2, 0, 1, 3)
        return mixed.flatten(1)

    def _mlp(self, x: torch.Tensor, layer: Layer) -> torch.Tensor:
        gate, up = (x @ layer.gate_up).split(self.config.hidden, dim=1)
        return (torch.nn.functional.silu(gate) * up) @ layer.down

    def _tensor(self, values: Floats) -> torch.Tensor:
        return torch.from_numpy(values).to(self.config.device, torch.bfloat16)

    def _warm_up(self) -> None:
        """Runs one step, which loads libraries and kernels before the first request is
        timed."""
        page = np.zeros(self.config.page_tokens, np.uint32)
        pages = TorchPages(self.config, 1)
        kv = TorchPagedKv(pages, self.config.layers, np.zeros(1, np.uint32))
        self.step(page, 0, kv)
        self.rows_computed = 0


def _norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = (wide.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
    return (wide * scale).bfloat16() * gain


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
