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
# Under the name that they are imported by: the generated code imports its neighbours by the whole of it.
google=$("$python" -c 'import google.rpc; print(list(google.rpc.__path__)[0])')/../..  # googleapis-common-protos has them
protoc() { "$python" -m grpc_tools.protoc -Iblindfit/protos=protos -I"$google" "$@"; }
protoc --python_out="$target" --pyi_out="$target" protos/*.proto
protoc --grpc_python_out="$target" protos/exchange.proto protos/measurement.proto protos/control.proto
[ "$target" = . ] && exit 0
for made in "$target"/blindfit/protos/*; do
  cmp -s "$made" "protos/$(basename "$made")" || { echo "protos/$(basename "$made") is not current: run 'make protos'"; exit 1; }
done
