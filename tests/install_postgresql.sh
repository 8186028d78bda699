#!/bin/sh
# The tests use a real PostgreSQL. Installs it where that is allowed (root, apt); elsewhere its tests skip and say so.
set -eu
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
command -v initdb >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "Installing PostgreSQL for the tests ..."
  export DEBIAN_FRONTEND=noninteractive
  { apt-get -qq update && apt-get -qq install -y --no-install-recommends postgresql; } >/dev/null 2>&1 || true
fi
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && exit 0
echo "PostgreSQL is not installed: its tests will be skipped (Debian: apt-get install postgresql)"
[ "${CI:-}" = "" ] || exit 1
