"""A small decoder-only transformer whose results do not depend on what was cached.

Floating-point sums depend on their order, and BLAS picks the order by the shape of a
product. So the shapes here follow from a row's absolute position alone:

- Every step computes one block, the `page_tokens` rows of one page. A row sits at its
  index within the page, whether it comes with its whole page (prefill) or alone
  (decode). Rows that a step does not compute are zero, and no row of a product depends
  on another row.
- The block of page n attends to the keys [0, (n + 1) * page_tokens), read from the
  pages in position order, always in one product over all of them. The causal mask gives
  the keys after a row a weight of exactly 0; whether such a key is there (prefill) or
  is a zero row (decode), it adds an exact 0.
- A cached prefix is a whole number of pages, so the first block computed after it is a
  block that a run without the cache computes too.

With one BLAS thread (see run.py) every logit is then bit-equal to that run's.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from paged_kv import Floats, PagedKv

Tokens = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class ModelConfig:
    name: str = "pando-demo"
    layers: int = 4
    width: int = 192
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 32
    hidden: int = 512
    vocabulary: int = 260  # 256 bytes and the special tokens of workload.py
    page_tokens: int = 16
    seed: int = 20
    # The torch device that computes in bfloat16. If None, numpy computes in float32.
    device: str | None = None


@dataclass(frozen=True)
class Layer:
    attention_norm: Floats
    query_key_value: Floats
    output: Floats
    mlp_norm: Floats
    gate_up: Floats
    down: Floats


def rms_norm(x: Floats, gain: Floats) -> Floats:
    mean_square = (x * x).sum(axis=-1, keepdims=True) / np.float32(x.shape[-1])
    return x / np.sqrt(mean_square + np.float32(1e-5)) * gain


def rotate(x: Floats, cos: Floats, sin: Floats) -> Floats:
    """Applies rotary positions: turns each pair (x[i], x[i + half]) by its row's
    angles."""
    half = x.shape[-1] // 2
    left, right = x[..., :half], x[..., half:]
    return np.concatenate((left * cos - right * sin, right * cos + left * sin), axis=-1)


class Transformer:
    """A transformer with seeded random weights: processes with equal configs hold equal
    models."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.rows_computed = 0
        random = np.random.default_rng(config.seed)

        def matrix(rows: int, columns: int) -> Floats:
            scale = np.float32(rows**-0.5)
            return random.standard_normal((rows, columns), dtype=np.float32) * scale

        def gain() -> Floats:
            return random.uniform(0.5, 1.5, config.width).astype(np.float32)

        def layer() -> Layer:
            queries = config.heads * config.head_size
            keys = config.kv_heads * config.head_size
            query_key_value = matrix(config.width, queries + 2 * keys)
            # The factor sharpens the attention: without it the values of thousands of
            # keys average out, and the context hardly matters.
            query_key_value[:, : queries + keys] *= 2
            return Layer(
                attention_norm=gain(),
                query_key_value=query_key_value,
                output=matrix(queries, config.width),
                mlp_norm=gain(),
                gate_up=matrix(config.width, 2 * config.hidden),
                down=matrix(config.hidden, config.width),
            )

        self._embedding = random.standard_normal(
            (config.vocabulary, config.width), dtype=np.float32
        )
        self._layers = [layer() for _ in range(config.layers)]
        self._final_norm = gain()
        self._unembedding = matrix(config.width, config.vocabulary)

        page = np.arange(config.page_tokens)
        causal = np.where(page[None, :] > page[:, None], -np.inf, 0).astype(np.float32)
        # Each query head that shares a KV head has a copy of the mask: see _attend.
        self._last_page_mask = np.tile(causal, (config.heads // config.kv_heads, 1))

    def step(self, tokens: Tokens, start: int, kv: PagedKv) -> Floats:
        """Computes the rows of `tokens`, at positions from `start` on within one page.

        Writes the KV of the rows and returns their logits, of shape (rows, vocabulary).
        The KV of [0, start) must be in `kv`. Raises ValueError if the rows do not fit
        into the page.
        """
        config = self.config
        offset = start % config.page_tokens
        rows = slice(offset, offset + len(tokens))
        if not 0 < len(tokens) <= config.page_tokens - offset:
            raise ValueError(
                f"{len(tokens)} tokens at position {start} do not fit its page"
            )
        x = np.zeros((config.page_tokens, config.width), dtype=np.float32)
        x[rows] = self._embedding[tokens]
        cos, sin = self._angles(start - offset)
        for index, layer in enumerate(self._layers):
            queries, keys, values = self._project(
                rms_norm(x, layer.attention_norm), layer
            )
            kv.write(index, start, rotate(keys, cos, sin)[rows], values[rows])
            loaded = kv.load(index, start + len(tokens))
            x += self._attend(rotate(queries, cos, sin), *loaded) @ layer.output
            x += self._mlp(rms_norm(x, layer.mlp_norm), layer)
        self.rows_computed += len(tokens)
        return (rms_norm(x, self._final_norm) @ self._unembedding)[rows]

    def _angles(self, block_start: int) -> tuple[Floats, Floats]:
        half = self.config.head_size // 2
        frequencies = 10_000.0 ** (-np.arange(half) / half)
        positions = np.arange(block_start, block_start + self.config.page_tokens)
        angles = (positions[:, None] * frequencies)[:, None, :]
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def _project(self, x: Floats, layer: Layer) -> tuple[Floats, Floats, Floats]:
        """Returns queries, keys and values, each of shape (page_tokens, its heads,
        head_size)."""
        config = self.config
        heads = (x @ layer.query_key_value).reshape(len(x), -1, config.head_size)
        keys, values = config.heads, config.heads + config.kv_heads
        return heads[:, :keys], heads[:, keys:values], heads[:, values:]

    def _attend(self, queries: Floats, keys: Floats, values: Floats) -> Floats:
        """Computes grouped-query attention: each KV head serves heads / kv_heads query
        heads.

        The queries of a group are stacked into one matrix of group * page_tokens rows.
        """
        config = self.config
        grouped = queries.reshape(
            config.page_tokens, config.kv_heads, -1, config.head_size
        )
        grouped = grouped.transpose(1, 2, 0, 3).reshape(
            config.kv_heads, -1, config.head_size
        )
        scores = (grouped * np.float32(config.head_size**-0.5)) @ keys.transpose(
            1, 2, 0
        )
        scores[:, :, -config.page_tokens :] += self._last_page_mask
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores, out=scores)
        mixed = (
            weights @ values.transpose(1, 0, 2) / weights.sum(axis=-1, keepdims=True)
        )
        mixed = mixed.reshape(config.kv_heads, -1, config.page_tokens, config.head_size)
        return mixed.transpose(2, 0, 1, 3).reshape(config.page_tokens, -1)

    def _mlp(self, x: Floats, layer: Layer) -> Floats:
        """Computes SwiGLU."""
        gate_up = x @ layer.gate_up
        gate, up = gate_up[:, : self.config.hidden], gate_up[:, self.config.hidden :]
        return (gate / (1 + np.exp(-gate)) * up) @ layer.down
