#!/bin/sh
# A party of some examples alone. While the example is another it sleeps, which costs nothing, and counts as healthy.
#   party_of.sh "EXAMPLES" EXAMPLE ARGUMENTS...    the last are those of `blindfit`
examples=$1 example=$2
shift 2
case " $examples " in
    *" $example "*) exec blindfit "$@" ;;
esac
echo "sleeps: this is a party of $examples, and BLINDFIT_EXAMPLE is $example"
touch /tmp/sleeps  # for its health check
exec sleep infinity
