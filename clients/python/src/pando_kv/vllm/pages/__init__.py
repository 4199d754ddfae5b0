"""vLLM over Pando's pages: vLLM's KV memory is the pool, which all engines share."""
