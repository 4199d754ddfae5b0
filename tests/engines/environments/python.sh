#!/usr/bin/env bash
# Runs the Python of an engine's environment, with this clone's pando_kv in it.
#
# usage: python.sh sglang|vllm ARGUMENTS...
#
# The environment is made first where it is not there (environment.py). Exits
# with 75 where its packages cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)
engine=$1
shift

python=$(/usr/bin/python3 "$here/environment.py" "$engine") || exit
# The package and its entry points, as `pip install` leaves them.
packages=$repository/build/engines/packages
installed=("$repository"/build/venv/lib/python3*/site-packages/pando_kv-*.dist-info)
mkdir -p "$packages"
ln -sfn "$repository/clients/python/src/pando_kv" "$packages/pando_kv"
ln -sfn "${installed[0]}" "$packages/pando_kv.dist-info"
PYTHONPATH=$packages:$repository/tests:$repository/tests/support exec "$python" "$@"
