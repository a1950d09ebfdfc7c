#!/usr/bin/env bash
# Installs the official Python and JavaScript clients and Azurite below the target directory, pinned by
# requirements.txt and package-lock.json. Does nothing if they are installed. Without Python or Node, the
# script prints which step it skips.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=tests/interop
interop=${CARGO_TARGET_DIR:-target}/interop
mkdir -p "$interop"

# Succeeds if the directory $1 was installed from the present list $2. The list is copied last, so an
# interrupted installation does not count.
installed() {
    cmp -s "$2" "$1/.installed"
}

if ! command -v python3 >/dev/null; then
    echo "SKIPPED: python3 not found, the Python client was not tried"
elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    echo "SKIPPED: python3 is older than 3.10, the Python client was not tried"
elif ! installed "$interop/python" "$here/requirements.txt"; then
    echo "installing the Python client"
    rm -rf "$interop/python"
    python3 -m venv "$interop/python"
    "$interop/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$interop/python/.installed"
fi

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "SKIPPED: node or npm not found, the JavaScript client and Azurite were not tried"
elif ! node -e 'process.exit(Number.parseInt(process.versions.node) < 20 ? 1 : 0)'; then
    echo "SKIPPED: node is older than 20, the JavaScript client and Azurite were not tried"
elif ! installed "$interop/node" "$here/package-lock.json"; then
    echo "installing the JavaScript client and Azurite"
    rm -rf "$interop/node"
    mkdir "$interop/node"
    cp "$here/package.json" "$here/package-lock.json" "$interop/node"
    # Neither package needs the install scripts of its dependencies.
    (cd "$interop/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    cp "$here/package-lock.json" "$interop/node/.installed"
fi
