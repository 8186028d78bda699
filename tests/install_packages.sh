#!/bin/sh
# The tests use a real PostgreSQL, and a Java runtime that scores exported PMML. Installs them where that is allowed
# (root, apt); elsewhere their tests skip and say so.
set -eu

# $1: what it is called; $2: Debian's package; $3: a command that succeeds where it is installed
install() {
  sh -c "$3" >/dev/null 2>&1 && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing $1 for the tests ..."
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends "$2"; } >/dev/null 2>&1 || true
  fi
  sh -c "$3" >/dev/null 2>&1 && return
  echo "$1 is not installed: its tests will be skipped (Debian: apt-get install $2)"
  [ "${CI:-}" = "" ]
}

install PostgreSQL postgresql 'ls /usr/lib/postgresql/*/bin/initdb || command -v initdb'
install Java default-jre-headless 'command -v java'
