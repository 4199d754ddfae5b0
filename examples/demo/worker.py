"""An engine's worker, which computes requests over the KV pages that Pando shares."""

import time
from multiprocessing.connection import Connection

import pando_kv
from admission import Admission
from backend import kv_dtype, make_model, paged_kv, shared_pages
from generation import Answer, Generation
from model import ModelConfig, Transformer
from paged_kv import KvPages
from serving import serve
from workload import Request


def run_worker(
    requests: Connection, config: ModelConfig, address: str, name: str
) -> None:
    model = make_model(config)
    with pando_kv.Client(address, name=f"worker {name}") as client:
        pool = client.attach_pool(
            expected_layout=expected_layout(config, client), model=config.name
        )
        pages = shared_pages(config, pool)
        serve(requests, lambda request: answer(client, pages, model, request))


def expected_layout(config: ModelConfig, client: pando_kv.Client) -> pando_kv.KvLayout:
    """Returns the layout that the model needs. Pando refuses to attach a worker whose
    expected layout differs from the pool's."""
    return pando_kv.KvLayout.make(
        capacity_pages=client.pool.capacity_pages,
        layers=config.layers,
        heads=config.kv_heads,
        head_size=config.head_size,
        dtype=kv_dtype(config),
        page_tokens=config.page_tokens,
    )


def answer(
    client: pando_kv.Client,
    pages: KvPages,
    model: Transformer,
    request: Request,
) -> Answer:
    started = time.perf_counter()
    admission = Admission(client, request, model.config.page_tokens)
    kv = paged_kv(model.config, pages, admission.block_table)
    generation = Generation(model, kv, request, admission.matched_tokens)
    prefill_rows = generation.prefill()
    first_token_seconds = time.perf_counter() - started
    # The prompt is published before the decoding, so that others can match the prompt
    # while this worker decodes.
    admission.publish(generation.computed_tokens)
    generation.decode()
    admission.finish(generation.computed_tokens)
    return Answer(
        reply=generation.reply,
        logits=generation.logits,
        prefill_rows=prefill_rows,
        first_token_seconds=first_token_seconds,
        matched_tokens=admission.matched_tokens,
        matched_pages=admission.matched_pages,
        published_pages=admission.published_pages,
        sent_tokens=admission.sent_tokens,
        cached=admission.cached,
    )
