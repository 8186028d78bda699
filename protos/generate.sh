#!/bin/sh
# Generates the Python code of protos/*.proto. With --check, fails if the committed code is not current.
#
# The compiler is the oldest that serves: its code runs with the protobuf of its own major version and of the next, so it
# decides the lowest protobuf and grpcio of pyproject.toml. .venv has a newer protobuf than the compiler bears, hence .venv-tools.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python
compiler=.venv-tools/bin/python
target=.
if [ "${1:-}" = --check ]; then
  target=$(mktemp -d)
  trap 'rm -rf "$target"' EXIT
fi
[ -x "$compiler" ] || { echo "$compiler is missing: run 'make lint' or 'make protos', which make it"; exit 1; }
# Under the name that they are imported by: the generated code imports its neighbours by the whole of it.
google=$("$python" -c 'import google.rpc; print(list(google.rpc.__path__)[0])')/../..  # googleapis-common-protos has them
protoc() { "$compiler" -m grpc_tools.protoc -Iblindfit/protos=protos -I"$google" "$@"; }
protoc --python_out="$target" --pyi_out="$target" protos/*.proto
protoc --grpc_python_out="$target" protos/exchange.proto protos/measurement.proto protos/control.proto
[ "$target" = . ] && exit 0
for made in "$target"/blindfit/protos/*; do
  cmp -s "$made" "protos/$(basename "$made")" || { echo "protos/$(basename "$made") is not current: run 'make protos'"; exit 1; }
done
