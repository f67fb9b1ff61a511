#!/bin/sh
# Runs a check that needs Python packages, which norma itself does not.
#
# usage: run_python.sh "PACKAGE..." SCRIPT [ARGUMENT...]
#
# The interpreter is $NORMA_PYTHON, or python3 where that is not set. Without the packages the exit code
# is 77, which CTest shows as "Skipped"; but who sets NORMA_PYTHON wants the check, so there it is a failure.
set -u

packages=$1
shift
for package in $packages; do
  if ! "${NORMA_PYTHON:-python3}" -c "import $package"; then
    echo "needs Python with the packages $packages: run \`make check-clients\`, which installs them outside of the" \
         "repository, or set NORMA_PYTHON to an interpreter that has them."
    [ -n "${NORMA_PYTHON:-}" ] && exit 1
    exit 77
  fi
done
exec "${NORMA_PYTHON:-python3}" "$@"
