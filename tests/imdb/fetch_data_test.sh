#!/bin/sh
# examples/imdb/fetch_data.sh against a server of wrong files (file://): what is not the official archive is
# refused with the reason, and never left under the archive's name.
#
# usage: fetch_data_test.sh PATH_OF_FETCH_DATA.SH
set -eu

fetch=$1
if ! command -v curl >/dev/null; then
  echo "skipped: wget knows no file:// addresses, and there is no curl"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
served=$work/served.tar.gz
folder=$work/data

fail() {
  echo "failed: $*" >&2
  cat "$work/output" >&2
  exit 1
}

# The script ends with this exit code and this text.
expect() {
  code=0
  IMDB_URL=file://$served sh "$fetch" "$folder" >"$work/output" 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "exit code $code instead of $1"
  grep -qF "$2" "$work/output" || fail "no text \"$2\""
}
expect_nothing_kept() {
  [ -z "$(ls -A "$folder")" ] || fail "left behind: $(ls -A "$folder")"
}

expect 1 "could not fetch file://$served"
expect_nothing_kept

echo "not found, but with status 200" >"$served"
expect 1 "is not the official archive: it has 31 bytes instead of 84125825"
expect_nothing_kept

truncate -s 84125825 "$served"
expect 1 "is not the official archive: its SHA-256 is not "
expect_nothing_kept

# What the user has under this name is neither used nor touched.
echo "the user's own" >"$folder/aclImdb_v1.tar.gz"
expect 1 "is not the official archive: it has 15 bytes instead of 84125825. Move it away"
[ "$(cat "$folder/aclImdb_v1.tar.gz")" = "the user's own" ] || fail "the file that was there changed"
[ "$(ls -A "$folder")" = aclImdb_v1.tar.gz ] || fail "left behind: $(ls -A "$folder")"
echo "ok"
