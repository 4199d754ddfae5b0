# An engine's image with Pando's client and adapters. After `make package`, from the
# root of the repository:
#
#   docker build -f deploy/docker/engine.Dockerfile -t REGISTRY/vllm-with-pando:0.32.0 .
#   docker build -f deploy/docker/engine.Dockerfile -t REGISTRY/sglang-with-pando:0.5.23 \
#     --build-arg ENGINE=lmsysorg/sglang:v0.5.23 .
ARG ENGINE=vllm/vllm-openai:v0.32.0

# hadolint ignore=DL3006
FROM ${ENGINE}
RUN --mount=type=bind,source=build/packages,target=/wheels \
    python3 -m pip install --no-cache-dir \
      /wheels/pando_kv-*.whl /wheels/pando_server-*.whl
