#!/usr/bin/env bash
# Runs what people do with `tables explore`, in Chromium, on our server: the daily flows. With --all, all flows, and those that read and
# write on Azurite, too. With --pictures, all flows, and pictures of all screens below the target directory. With --measure, what the page
# costs, with the release build. Without Node or Chromium, the
# script prints which step it skips.
set -euo pipefail
flows=
pictures=
case "$*" in
"") ;;
--all) flows=all ;;
--pictures) flows=all pictures=yes ;;
--measure) flows=measure ;;
*)
    echo "usage: $0 [--all | --pictures | --measure]" >&2
    exit 2
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
tests/browser/install.sh
if [ ! -e "$target/browser/node/.installed" ] || ! command -v chromium >/dev/null; then
    echo "SKIPPED: the page in a browser"
    exit
fi

if [ "$flows" = measure ]; then
    cargo build -q --release --bin tablesdk-server --bin tables
    TABLESDK_PROGRAMS=$(cd "$target/release" && pwd)
    NODE_PATH=$(cd "$target" && pwd)/browser/node/node_modules
    export TABLESDK_PROGRAMS NODE_PATH
    exec node tests/browser/measure.mjs
fi

# --workspace and the example select the features of a run of all tests, so that nothing is built twice.
cargo build -q --workspace --bin tablesdk-server --bin tables --example first_program
TABLESDK_PROGRAMS=$(cd "$target/debug" && pwd)
NODE_PATH=$(cd "$target" && pwd)/browser/node/node_modules
export TABLESDK_PROGRAMS NODE_PATH TABLESDK_FLOWS=$flows

azurite=$target/interop/node/node_modules/.bin/azurite-table
if [ -x "$azurite" ]; then
    TABLESDK_AZURITE=$(cd "$(dirname "$azurite")" && pwd)/azurite-table
    export TABLESDK_AZURITE
elif [ -n "$flows" ]; then
    echo "SKIPPED: the page on Azurite, which tests/interop/install.sh installs"
fi
if [ -n "$pictures" ]; then
    rm -rf "$target/browser/pictures"
    TABLESDK_PICTURES=$(cd "$target/browser" && pwd)/pictures
    export TABLESDK_PICTURES
fi
node --test-reporter=spec tests/browser/flows.mjs
