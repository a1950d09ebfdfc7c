#!/usr/bin/env bash
# Runs the tests of the official Go client, from its module, against our server over HTTPS: as Azure Table storage and as Cosmos DB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

here=tests/interop/go_tests
target=${CARGO_TARGET_DIR:-target}
if ! command -v go >/dev/null || ! command -v openssl >/dev/null; then
    echo "SKIPPED: go or openssl not found, the tests of the Go client"
    exit
fi

cargo build -q --workspace --bin tablesdk-server --example first_program
scratch=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$scratch"' EXIT

hosts='DNS:acct.table.core.windows.net,DNS:acct.table.cosmos.azure.com'
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=acct -addext "subjectAltName=$hosts" \
    -keyout "$scratch/key.pem" -out "$scratch/cert.pem" 2>/dev/null
key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==

# start FLAVOR: leaves its port in `port`.
start() {
    mkfifo "$scratch/$1"
    "$target/debug/tablesdk-server" --port 0 --flavor "$1" --account "acct:$key" --accept-any-token --log off \
        --tls-cert "$scratch/cert.pem" --tls-key "$scratch/key.pem" >"$scratch/$1" &
    servers+=($!)
    local line
    exec 3<"$scratch/$1"
    IFS= read -r -t 60 line <&3
    cat <&3 >/dev/null &
    exec 3<&-
    port=${line#*listens on https://*:}
    port=${port%%/*}
}

start storage
export TABLESDK_STORAGE_PORT=$port
start cosmos-db
export TABLESDK_COSMOS_DB_PORT=$port

module=$(cd tests/interop/go && go list -m -f '{{.Dir}}' github.com/Azure/azure-sdk-for-go/sdk/data/aztables)
cp -r "$module" "$scratch/aztables"
chmod -R u+w "$scratch/aztables"
cp "$here/servers_test.go" "$scratch/aztables"
# They wait for minutes until Azure knows policies and settings.
sed -i 's/recording\.Sleep(.*/recording.Sleep(0)/' "$scratch"/aztables/*_test.go

export AZURE_RECORD_MODE=live SSL_CERT_FILE=$scratch/cert.pem
export TABLES_STORAGE_ACCOUNT_NAME=acct TABLES_PRIMARY_STORAGE_ACCOUNT_KEY=$key
export TABLES_COSMOS_ACCOUNT_NAME=acct TABLES_PRIMARY_COSMOS_ACCOUNT_KEY=$key
# TestAzurite runs with Azurite alone.
(cd "$scratch/aztables" && go test -count=1 -v -timeout 5m . >"$scratch/log" 2>&1) && status=0 || status=$?
grep -E '^ *--- (FAIL|SKIP)' "$scratch/log" || true
[ "$status" -eq 0 ] || tail -n 100 "$scratch/log"
passed=$(grep -cE '^ *--- PASS' "$scratch/log" || true)
failed=$(grep -cE '^ *--- FAIL' "$scratch/log" || true)
echo "tests of the Go client: $passed passed, $failed failed"
skipped=$(grep -E '^ *--- SKIP' "$scratch/log" || true)
[[ $status -eq 0 && $passed -gt 100 && $skipped == *TestAzurite* && $skipped != *$'\n'* ]]
