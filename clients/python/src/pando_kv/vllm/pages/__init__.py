"""vLLM over Pando's pages: its KV memory is the pool, which all engines share."""
