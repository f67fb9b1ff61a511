#!/bin/sh
# Fetches the official archive of the Large Movie Review Dataset v1.0 (Maas et al., ACL 2011).
#
#     examples/imdb/fetch_data.sh [FOLDER]        default: data
#
# Resumes a download that broke off, checks size and SHA-256, and only then gives the file its name:
# FOLDER/aclImdb_v1.tar.gz is there and right, or it is not there. Exit code: 0 there, 1 not.
# IMDB_URL names another server.
set -eu

url=${IMDB_URL:-https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz}
size=84125825
sha256=c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe
folder=${1:-data}
file=$folder/aclImdb_v1.tar.gz
part=$file.part

fail() {
  echo "fetch_data.sh: $*" >&2
  exit 1
}

# Sets `problem` to what is wrong with a file; empty if it is the official archive.
examine() {
  problem=
  have=$(wc -c <"$1" | tr -d ' ')
  if [ "$have" -ne $size ]; then
    problem="it has $have bytes instead of $size"
  elif [ "$(sha256sum "$1" | cut -d ' ' -f 1)" != $sha256 ]; then
    problem="its SHA-256 is not $sha256"
  fi
}

if [ -e "$file" ]; then
  examine "$file"
  [ -z "$problem" ] || fail "$file is not the official archive: $problem. Move it away and try again."
  echo "$file is there and right."
  exit 0
fi

mkdir -p "$folder"
echo "Fetching $url (80 MiB)"
if command -v curl >/dev/null; then
  # -C - asks for what is missing behind the bytes of an earlier try.
  curl --fail --location --retry 3 --connect-timeout 20 -C - --output "$part" "$url" || got=$?
  if [ "${got:-0}" -eq 33 ]; then # this server cannot resume
    rm -f "$part"
    got=0
    curl --fail --location --retry 3 --connect-timeout 20 --output "$part" "$url" || got=$?
  fi
elif command -v wget >/dev/null; then
  wget --tries=3 --timeout=20 --continue --output-document="$part" "$url" || got=$?
else
  fail "needs curl or wget; install one of them, or put the archive at $file by hand."
fi
# A server refuses to resume a complete file: what counts is the file, not the client's exit code.
[ -s "$part" ] || { rm -f "$part"; fail "could not fetch $url. Without a network, copy the archive
to $file by hand, or run the program without --data: it has a sample built in."; }
examine "$part"
if [ -n "$problem" ] && [ "$have" -lt $size ] && [ "${got:-0}" -ne 0 ]; then
  fail "the download broke off after $have of $size bytes. Run this again to resume it."
elif [ -n "$problem" ]; then
  rm -f "$part"
  fail "what came from $url is not the official archive: $problem. Nothing was kept."
fi
mv "$part" "$file"
echo "$file is there and right. Please cite: Maas et al., ACL 2011 (see examples/imdb/sample/CITATION)."
