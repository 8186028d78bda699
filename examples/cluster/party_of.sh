#!/bin/sh
# Runs a party that only some examples need. In other examples it sleeps, costs nothing, and counts as healthy.
#   party_of.sh "EXAMPLES" EXAMPLE ARGUMENTS...    the last are those of `blindfit`
examples=$1 example=$2
shift 2
case " $examples " in
    *" $example "*) exec blindfit "$@" ;;
esac
echo "sleeps: $examples need this party, and BLINDFIT_EXAMPLE is $example"
touch /tmp/sleeps  # for its health check
exec sleep infinity
