#!/usr/bin/env bash
# Installs the official Go, Java, Python and JavaScript clients, that of the Model Context Protocol and Azurite below the target directory, pinned by
# pom.xml, requirements.txt and package-lock.json. Does nothing if they are installed. Without Java, Python or Node, the
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

java=$interop/java
kit=examples/other_languages/java
if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
    echo "SKIPPED: javac or mvn not found, the Java client was not tried"
elif ! javac --release 17 -version >/dev/null 2>&1; then
    echo "SKIPPED: javac is older than 17, the Java client was not tried"
else
    cat "$here/java/pom.xml" "$kit/pom.xml" >"$interop/java.poms"
    if ! installed "$java" "$interop/java.poms"; then
        echo "installing the Java client"
        rm -rf "$java"
        mkdir "$java"
        java_full=$(cd "$java" && pwd)
        maven=(mvn --quiet --batch-mode --no-transfer-progress "-Dmaven.repo.local=$java_full/repository")
        "${maven[@]}" --file "$here/java/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$java_full/lib"
        # A run of the tests without a test: from then on Maven needs no network for them.
        "${maven[@]}" --file "$kit/pom.xml" "-Doutput=$java_full/kit" test -Dtest=None -Dsurefire.failIfNoSpecifiedTests=false
        cp "$interop/java.poms" "$java/.installed"
    fi
    rm -rf "$java/classes"
    javac -encoding UTF-8 -cp "$java/lib/*" -d "$java/classes" "$here"/java/*.java tests/foreign/Child.java
fi

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

if ! command -v go >/dev/null; then
    echo "SKIPPED: go not found, the Go client was not tried"
elif ! [[ $(GOTOOLCHAIN=local go env GOVERSION) =~ go1\.([0-9]+) ]] || [ "${BASH_REMATCH[1]}" -lt 23 ]; then
    echo "SKIPPED: go is older than 1.23, the Go client was not tried"
else
    # The programs contain the client, which go.sum pins. Go itself finds out what has changed, and builds only that.
    rm -f "$interop/go/.installed"
    mkdir -p "$interop/go"
    programs=$(cd "$interop/go" && pwd)
    (
        cd "$here/go"
        go build -buildvcs=false -o "$programs/client" .
        go build -buildvcs=false -o "$programs/child" ../../foreign/child.go
    )
    cp "$here/go/go.sum" "$interop/go/.installed"
fi
