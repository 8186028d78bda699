#!/bin/sh
# Generates the code of protos/*.proto beside them; with --check, says whether the committed code is current.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
target=.
if [ "${1:-}" = --check ]; then
  target=$(mktemp -d)
  trap 'rm -rf "$target"' EXIT
fi
"$python" -m grpc_tools.protoc -I. --python_out="$target" --pyi_out="$target" protos/*.proto
"$python" -m grpc_tools.protoc -I. --grpc_python_out="$target" protos/exchange.proto protos/measurement.proto protos/control.proto
[ "$target" = . ] && exit 0
for made in "$target"/protos/*; do
  cmp -s "$made" "protos/$(basename "$made")" || { echo "protos/$(basename "$made") is not current: run 'make protos'"; exit 1; }
done
