#!/bin/sh
# Makes the data of both examples, once, and gives each party its own file: a folder of DATASETS is a party's volume.
#   data.sh DATASETS
set -eu
examples=$(dirname "$(dirname "$(realpath "$0")")")
datasets=$1
made=$(mktemp -d)
trap 'rm -r "$made"' EXIT

give() {  # file, party's file
    [ -e "$datasets/$2" ] && return
    cp "$made/$1" "$datasets/$2.unfinished"
    mv "$datasets/$2.unfinished" "$datasets/$2"
    echo "$datasets/$2"
}

umask 077
python "$examples/taylor/prepare.py" --out "$made/taylor"
python "$examples/walr/prepare.py" --out "$made/walr" >"$made/said"
for party in hospital laboratory archive; do
    give "taylor/$party.csv" "$party/tumours.csv"
done
give walr/features.parquet hospital/people.parquet
give walr/visits.csv clinic/visits.csv
