"""Prompts whose pages in the mapped pool show which prefix they belong to.

A worker fills each page that it writes with a digest of exactly the prefix that ends in
the page. A page with any other content was given to another worker, or belongs to
another prefix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from pando_kv import MappedPool, Namespace

# Prompts are walks down a tree that all clients share. Each turn has WAYS branches.
WAYS = 3
MAX_TURNS = 6
MAX_TURN_TOKENS = 40
CACHE_SALT = "s"
NAMESPACES = [
    None,
    Namespace(),
    Namespace(extra_key=""),
    Namespace(cache_salt=CACHE_SALT),
]


@dataclass
class Prompt:
    namespace: Namespace | None
    tokens: np.ndarray
    digests: np.ndarray = field(repr=False)
    """The marks that the memory of each whole page must show."""


def make_prompt(
    namespace: Namespace | None, way: Sequence[int], page_tokens: int
) -> Prompt:
    """Makes the prompt of the turns along this way."""
    turns = [
        np.random.default_rng([77, *way[: i + 1]]).integers(
            0, 2**32, 1 + (sum(way[: i + 1]) * 13) % MAX_TURN_TOKENS, np.uint32
        )
        for i in range(len(way))
    ]
    tokens = np.concatenate(turns)
    # An unset namespace is the default one.
    digest = repr(namespace or Namespace()).encode()
    digests = []
    for end in range(page_tokens, tokens.size + 1, page_tokens):
        page = tokens[end - page_tokens : end].tobytes()
        digest = blake2b(digest + page, digest_size=8).digest()
        digests.append(int.from_bytes(digest, "little"))
    return Prompt(namespace, tokens, np.array(digests, np.uint64))


def random_prompt(random: np.random.Generator, page_tokens: int) -> Prompt:
    namespace = NAMESPACES[random.integers(len(NAMESPACES))]
    way = [int(random.integers(WAYS)) for _ in range(random.integers(1, MAX_TURNS + 1))]
    return make_prompt(namespace, way, page_tokens)


class MarkedPages:
    """The pages of a mapped pool, each filled with one mark."""

    def __init__(self, pool: MappedPool) -> None:
        # One array (page, element) of 64-bit words for every layer's keys and values.
        self._words = [
            view.reshape(view.shape[0], -1).view(np.uint64)
            for layer in range(pool.layout.layers)
            for view in (pool.keys(layer), pool.values(layer))
        ]

    def write(self, pages: np.ndarray, marks: np.ndarray | int) -> None:
        """Fills the pages with `marks`: one for each page, or one for all."""
        column = np.reshape(np.asarray(marks, np.uint64), (-1, 1))
        for words in self._words:
            words[pages] = column

    def wrong(self, pages: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """Returns the pages that do not show their mark everywhere."""
        is_wrong = np.zeros(pages.size, bool)
        for words in self._words:
            is_wrong |= (words[pages] != marks[:, None]).any(axis=1)
        return pages[is_wrong]
