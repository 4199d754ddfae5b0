#!/usr/bin/env bash
# Fails when a source is not formatted (.clang-format, ruff.toml), or ruff finds
# a mistake in Python.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=
git ls-files '*.h' '*.cc' '*.cu' | xargs clang-format --dry-run -Werror ||
  failed=yes
build/venv/bin/ruff format --quiet --diff . || failed=yes
build/venv/bin/ruff check --quiet --output-format concise . || failed=yes
if [[ $failed ]]; then
  echo "\`make format\` mends formatting, imports and more" >&2
  exit 1
fi
echo "format: ok"
