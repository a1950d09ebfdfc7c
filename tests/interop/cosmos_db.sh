#!/usr/bin/env bash
# Runs the tests of our client against the flavor Cosmos DB of our server, but for what is listed in tests/harness/cosmos_db.rs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
cargo build -q --workspace --bin tablesdk-server --example first_program
scratch=$(mktemp -d)
mkfifo "$scratch/server"
"$target/debug/tablesdk-server" --port 0 --flavor cosmos-db --log off >"$scratch/server" &
server=$!
trap 'kill "$server"; rm -rf "$scratch"' EXIT
exec 3<"$scratch/server"
line=
until [[ $line == *'connection string: '* ]]; do
    IFS= read -r -t 60 line <&3
done
cat <&3 >/dev/null &
exec 3<&-
TABLESDK_TEST_ENDPOINT=${line#*connection string: } cargo test -q --workspace --no-fail-fast \
    --test entities --test operations --test patterns --test resilience elsewhere -- --ignored
