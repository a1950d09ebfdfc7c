#!/usr/bin/env bash
# Runs the conformance suite on Azurite, and writes the failures to azurite.md. No other script calls it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tests/interop/install.sh
target=${CARGO_TARGET_DIR:-target}
scratch=$(mktemp -d)
port=$(node -e '
    const server = net.createServer().listen(0, "127.0.0.1", () => {
        console.log(server.address().port);
        server.close();
    });')
mkfifo "$scratch/log"
"$target/interop/node/node_modules/.bin/azurite-table" --inMemoryPersistence --skipApiVersionCheck \
    --disableTelemetry --tableHost 127.0.0.1 --tablePort "$port" >"$scratch/log" &
azurite=$!
trap 'kill "$azurite"; rm -rf "$scratch"' EXIT
exec 3<"$scratch/log"
line=
until [[ $line == *'successfully started'* ]]; do
    IFS= read -r -t 60 line <&3 || exit 1
done
cat <&3 >/dev/null &

# The development account.
account=devstoreaccount1
key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
export TABLESDK_CONFORMANCE_ENDPOINT="AccountName=$account;AccountKey=$key;TableEndpoint=http://127.0.0.1:$port/$account"
cargo test -q --workspace --test conformance -- --nocapture --test-threads 1 \
    >"$scratch/run" 2>&1

version=$(node -p "require('./$target/interop/node/node_modules/azurite/package.json').version" 2>/dev/null ||
    node -p "require('$target/interop/node/node_modules/azurite/package.json').version")
{
    echo "# Rules of the service that Azurite $version breaks"
    echo
    echo "This list contains only rules that recordings or the documentation of the service establish. Each line shows a rule and the"
    echo "behaviour of Azurite. Our server keeps all these rules. \`tests/conformance/azurite.sh\` writes this file."
    echo
    tr -d '\r' <"$scratch/run" | grep -E '^  [a-z_]+, ' | sort | sed -E \
        -e 's/Conf[0-9a-fA-F]{16}/TABLE/g; s/CONF[0-9A-F]{16}/TABLE/g' -e "s/:$port/:PORT/g" \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}(:|%3A)[0-9]{2}(:|%3A)[0-9]{2}\.[0-9]{7}Z/TIME/g' \
        -e 's/RequestId:[0-9a-f-]+/RequestId:ID/g' \
        -e 's/^  ([a-z_]+), (.{0,220}).*$/* `\1` \2/'
} >tests/conformance/azurite.md
grep -E ' on the endpoint: ' "$scratch/run"
