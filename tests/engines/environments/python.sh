#!/usr/bin/env bash
# Runs the Python of an engine's environment, with this clone's pando_kv in it.
#
# usage: python.sh sglang|vllm ARGUMENTS...
#
# The environment is made first where it is not there (environment.py). Exits
# with 75 where its packages cannot be had.
set -euo pipefail
shopt -s extglob
here=$(cd "$(dirname "$0")" && pwd)
repository=$(cd "$here/../../.." && pwd)
engine=$1
shift

python=$(/usr/bin/python3 "$here/environment.py" "$engine") || exit
# The package, its native module and its entry points, as `pip install` leaves them.
packages=$repository/build/engines/packages
installed=("$repository"/build/venv/lib/python3*/site-packages)
[[ ! -L $packages/pando_kv ]] || rm "$packages/pando_kv"
mkdir -p "$packages/pando_kv"
find "$packages/pando_kv" -xtype l -delete
ln -sfn "$repository"/clients/python/src/pando_kv/!(__pycache__) \
  "${installed[0]}"/pando_kv/_native*.so "$packages/pando_kv"
ln -sfn "${installed[0]}"/pando_kv-*.dist-info "$packages/pando_kv.dist-info"
ln -sfn "${installed[0]}/nanobind_backend" "$packages/nanobind_backend"
# Each engine's process would compile what it imports otherwise, for a quarter of a minute.
unset PYTHONDONTWRITEBYTECODE
PYTHONPATH=$packages:$repository/tests:$repository/tests/support exec "$python" "$@"
