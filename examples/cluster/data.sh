#!/bin/sh
# Makes the data of all examples once, and gives each party its own file. Each folder of DATASETS is a party's volume.
#   data.sh DATASETS
# East and west get shares of the clinic's labels from the same split: halves of two splits do not fit.
set -eu
examples=$(dirname "$(dirname "$(realpath "$0")")")
datasets=$1
missing=
for file in hospital/tumours.csv laboratory/tumours.csv archive/tumours.csv hospital/people.parquet clinic/visits.csv \
    east/visits.parquet west/visits.parquet; do
    [ -e "$datasets/$file" ] || missing=$file
done
[ -n "$missing" ] || exit 0

half() {  # server, the other
    [ -e "$datasets/$1/visits.parquet" ] && [ ! -e "$datasets/$2/visits.parquet" ] || return 0
    echo "$datasets/$1/visits.parquet is half of a split, and $2 lacks the other: remove it, and the labels are split again" >&2
    exit 1
}
half east west
half west east

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
[ ! -e "$datasets/east/visits.parquet" ] || exit 0

blindfit split-labels "$examples/cluster/clinic.toml" --dataset visits \
    --set "datasets.visits.url=csv:$datasets/clinic/visits.csv" --out "$made/east" "$made/west" >"$made/said"
for server in east west; do
    cp "$made/$server" "$datasets/$server/visits.parquet.unfinished"
done
for server in east west; do
    mv "$datasets/$server/visits.parquet.unfinished" "$datasets/$server/visits.parquet"
    echo "$datasets/$server/visits.parquet"
done
