#!/bin/sh
# Generates pando_kv._proto from proto/pando/v1. The result is committed, so
# that installing the package needs no protoc.
#
# Usage: generate_protos.sh [OUTPUT_DIR]
# PROTOC names the compiler (default: protoc). It must be 3.21: code generated
# by it carries no check of the protobuf runtime's version and runs on protobuf
# 5 to 7, while newer generators tie their code to two major versions.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
proto=$here/../../proto
out=${1:-$here/src/pando_kv/_proto}
protoc=${PROTOC:-protoc}

version=$("$protoc" --version)
case $version in
  "libprotoc 3.21."*) ;;
  *) echo "generate_protos.sh: need protoc 3.21, found $version" >&2; exit 1 ;;
esac

mkdir -p "$out/pando/v1"
"$protoc" -I"$proto" --python_out="$out" --pyi_out="$out" \
  "$proto"/pando/v1/*.proto
# Inside the package, so that the top-level name `pando` stays free.
sed -i 's/^from pando\.v1 import/from pando_kv._proto.pando.v1 import/' \
  "$out"/pando/v1/*_pb2.py "$out"/pando/v1/*_pb2.pyi
touch "$out/__init__.py" "$out/pando/__init__.py" "$out/pando/v1/__init__.py"
