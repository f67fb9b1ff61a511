#!/bin/sh
# Installs the Debian or Ubuntu packages that norma is built with and this machine lacks. Asks nothing,
# does nothing where all are there, and names the packages where it cannot install them.
#
# usage: tools/install_packages.sh [package...]     more packages than the list below
set -u

# One line an entry; `a|b` is satisfied by either, and the first that the distribution has is installed.
packages="
g++ cmake ninja-build pkg-config git
libdnnl-dev
libopenblas-openmp-dev|libopenblas-dev
libspdlog-dev nlohmann-json3-dev
libarchive-dev libsentencepiece-dev
libcli11-dev libtomlplusplus-dev
libprotobuf-dev protobuf-compiler
catch2
curl ca-certificates
$*"

say() { printf 'norma: %s\n' "$*" >&2; }

is_installed() {
  [ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

# The entries of which no alternative is installed.
missing_entries() {
  for entry in $packages; do
    satisfied=no
    for package in $(echo "$entry" | tr '|' ' '); do
      if is_installed "$package"; then satisfied=yes; fi
    done
    [ $satisfied = yes ] || echo "$entry"
  done
}

# For each entry the first alternative that apt knows, or the entry's first name, for apt to complain about.
choose() {
  for entry in "$@"; do
    choice=${entry%%|*}
    for package in $(echo "$entry" | tr '|' ' '); do
      if apt-cache show "$package" >/dev/null 2>&1; then
        choice=$package
        break
      fi
    done
    echo "$choice"
  done
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "this is not Debian or Ubuntu, so nothing was installed. The build needs what these packages hold:"
  say "$(echo $packages)"
  exit 0 # The libraries may well be here under other names; CMake will tell.
fi

missing=$(missing_entries)
[ -n "$missing" ] || exit 0

give_up() {
  say "$1"
  say "install these packages, then run make again (or make PACKAGES=skip ... where they are here in another way):"
  say "    apt-get install $(choose $missing | tr '\n' ' ')"
  exit 1
}

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || give_up "packages are missing, and installing them needs root or sudo."
  as_root=sudo
fi

say "installing: $(echo $missing)"
export DEBIAN_FRONTEND=noninteractive
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y"
# A failed update (no network) is no failure yet: the packages may be in the cache.
$apt update || say "apt-get update failed; trying with the package lists that are here"
$apt install --no-install-recommends $(choose $missing) ||
  give_up "apt-get could not install the packages (no network, or no right to?)."
