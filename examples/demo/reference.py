"""A process that computes every request from nothing, without Pando and without a
cache."""

import time
from multiprocessing.connection import Connection

import numpy as np
from backend import make_model, paged_kv, private_pages
from generation import Answer, Generation
from model import ModelConfig, Transformer
from serving import serve
from workload import Request


def run_reference(requests: Connection, config: ModelConfig) -> None:
    model = make_model(config)
    serve(requests, lambda request: answer(model, request))


def answer(model: Transformer, request: Request) -> Answer:
    config = model.config
    count = -(-(len(request.prompt) + request.max_new_tokens) // config.page_tokens)
    pages = private_pages(config, count)
    started = time.perf_counter()
    kv = paged_kv(config, pages, np.arange(count, dtype=np.uint32))
    generation = Generation(model, kv, request, matched_tokens=0)
    prefill_rows = generation.prefill()
    first_token_seconds = time.perf_counter() - started
    generation.decode()
    no_pages = np.empty(0, dtype=np.uint32)
    return Answer(
        reply=generation.reply,
        logits=generation.logits,
        prefill_rows=prefill_rows,
        first_token_seconds=first_token_seconds,
        matched_tokens=0,
        matched_pages=no_pages,
        published_pages=no_pages,
    )
