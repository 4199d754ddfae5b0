"""Random prompts, some of which begin alike."""

import random

VOCABULARY = 150_000


def document(chance: random.Random, blocks: int, block_tokens: int) -> list[int]:
    return [chance.randrange(1, VOCABULARY) for _ in range(blocks * block_tokens)]


def branch(
    chance: random.Random, of: list[int], blocks: int, block_tokens: int
) -> list[int]:
    """Returns tokens that begin as `of` does, up to a block's end, and then differ."""
    shared = chance.randint(1, len(of) // block_tokens) * block_tokens
    return of[:shared] + document(chance, blocks, block_tokens)
