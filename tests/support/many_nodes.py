"""A cache of many nodes, which concurrent inserts fill quickly."""

from collections import deque

import grpc
import numpy as np
from pando_kv import Client
from pando_kv._proto.pando.v1 import prefix_cache_pb2

# Each chat begins with a system prompt, followed by a document.
SYSTEM_PROMPTS = 30
DOCUMENTS = 40
SYSTEM_PAGES = 3
DOCUMENT_PAGES = 2
AT_A_TIME = 64


def publish_chats(client: Client, address: str, chats: int, seed: int) -> None:
    """Publishes chats, each of which ends with a page of its own, a leaf.

    Some system prompts and documents are more frequent than others.
    """
    page_tokens = client.pool.layout.page_tokens
    random = np.random.default_rng(seed)
    systems = np.minimum(random.exponential(6, chats), SYSTEM_PROMPTS - 1).astype(int)
    documents = np.minimum(random.exponential(9, chats), DOCUMENTS - 1).astype(int)
    pages = SYSTEM_PAGES + DOCUMENT_PAGES + 1
    page_ids = client.allocate_pages(chats * pages).reshape(chats, pages)
    with grpc.insecure_channel(address) as channel:
        insert = channel.unary_unary("/pando.v1.PrefixCache/Insert")
        running: deque[grpc.Future] = deque()
        for chat in range(chats):
            request = prefix_cache_pb2.InsertRequest(
                session_id=client.session_id,
                tokens=np.repeat(
                    [systems[chat], 1000 + documents[chat], 10_000 + chat],
                    np.array([SYSTEM_PAGES, DOCUMENT_PAGES, 1]) * page_tokens,
                ).tolist(),
                page_ids=page_ids[chat].tolist(),
            )
            running.append(insert.future(request.SerializeToString(), timeout=60))
            if len(running) == AT_A_TIME:
                running.popleft().result()
        for call in running:
            call.result()
