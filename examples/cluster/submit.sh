#!/bin/sh
# Submits the job of an example and says how to get at its report.
#   submit.sh EXAMPLE
trap 'kill -TERM "$!"' INT TERM  # `docker-compose stop` and Ctrl-C: the job is stopped, and the parties are told
blindfit submit "/jobs/$1.toml" --out "/reports/$1" &
wait "$!"
ended=$?
[ "$ended" -le 128 ] || { wait "$!"; ended=$?; }  # the first wait ended with the signal, this one ends with the job
[ "$ended" -ne 0 ] || echo "To copy the report: docker cp $(uname -n):/reports/$1 $1-report"
exit "$ended"
