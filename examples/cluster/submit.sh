#!/bin/sh
# Submits the job of an example, and prints the command that copies its report.
#   submit.sh EXAMPLE
trap 'kill -TERM "$!"' INT TERM  # `docker-compose stop` and Ctrl-C stop the job, and inform the parties
blindfit submit "/jobs/$1.toml" --out "/reports/$1" &
wait "$!"
ended=$?
[ "$ended" -le 128 ] || { wait "$!"; ended=$?; }  # the first wait ended with the signal, this one ends with the job
[ "$ended" -ne 0 ] || echo "To copy the report: docker cp $(uname -n):/reports/$1 $1-report"
exit "$ended"
