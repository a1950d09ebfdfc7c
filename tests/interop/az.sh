#!/usr/bin/env bash
# Runs the storage commands of the Azure command line against our server. No other script calls it: the
# installation takes about 750 MB below the target directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=${CARGO_TARGET_DIR:-target}
az=$target/interop/az
version=2.91.0
if [ "$(cat "$az/.installed" 2>/dev/null)" != "$version" ]; then
    echo "installing the Azure command line $version"
    rm -rf "$az"
    python3 -m venv "$az"
    "$az/bin/python" -m pip install --quiet --disable-pip-version-check "azure-cli==$version"
    echo "$version" >"$az/.installed"
fi

cargo build -q -p tablesdk-server --bin tablesdk-server
scratch=$(mktemp -d)
mkfifo "$scratch/server"
"$target/debug/tablesdk-server" --port 0 >"$scratch/server" &
server=$!
trap 'kill "$server"; wait "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
exec 3<"$scratch/server"
until [[ ${line-} == *'connection string: '* ]]; do
    IFS= read -r -t 60 line <&3
done
export AZURE_STORAGE_CONNECTION_STRING=${line#*connection string: }
export AZURE_CONFIG_DIR=$scratch/config AZURE_CORE_COLLECT_TELEMETRY=false

checks=0
failures=0

# check EXPECTED ARGUMENTS...
# The command succeeds and prints EXPECTED, apart from white space.
check() {
    local expected=$1 found
    shift
    found=$("$az/bin/az" storage "$@" --only-show-errors --output json 2>&1 || echo " FAILED")
    found=$(tr -d ' \n' <<<"$found")
    checks=$((checks + 1))
    if [ "$found" = "$expected" ]; then
        echo "ok: az storage $*"
    else
        failures=$((failures + 1))
        printf 'FAILED: az storage %s\nexpected %s\nfound    %s\n' "$*" "$expected" "$found" >&2
    fi
}

check '{"created":true}' table create --name people
check '{"created":true}' table create --name people # it exists, and az reports success
check '{"created":true}' table create --name others
check '{"exists":true}' table exists --name people
check '{"exists":false}' table exists --name nobody
check '["others","people"]' table list --query '[].name'

insert=(entity insert --table-name people --query 'keys(@)')
check '["date","etag","version"]' "${insert[@]}" --entity 'PartitionKey=p' "RowKey=it's & r" 'Text=x y' \
    'Count=7' 'Count@odata.type=Edm.Int32' 'Long=8589934592' 'Long@odata.type=Edm.Int64' \
    'Real=1.5' 'Real@odata.type=Edm.Double' 'Flag=true' 'Flag@odata.type=Edm.Boolean' \
    'When=2020-01-01T01:02:00Z' 'When@odata.type=Edm.DateTime' \
    'Id=c9da6455-213d-42c9-9a79-3e9149a57833' 'Id@odata.type=Edm.Guid'
check '["date","etag","version"]' "${insert[@]}" --entity PartitionKey=p RowKey=second Text=z

show=(entity show --table-name people --partition-key p)
check '["xy",7,1.5,true]' "${show[@]}" --row-key "it's & r" --query '[Text,Count,Real,Flag]'
check '{"PartitionKey":"p","Text":"z"}' "${show[@]}" --row-key second --select PartitionKey Text \
    --query '{PartitionKey:PartitionKey,Text:Text}'
query=(entity query --table-name people --query 'items[].RowKey')
check '["it'"'"'s&r","second"]' "${query[@]}"
check '["second"]' "${query[@]}" --filter "Text eq 'z'" --select RowKey
check '["it'"'"'s&r"]' "${query[@]}" --num-results 1
page=(entity query --table-name people --num-results 1 --query 'nextMarker')
marker=$("$az/bin/az" storage "${page[@]}" --output json --only-show-errors)
partition=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nextpartitionkey"])' "$marker")
row=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["nextrowkey"])' "$marker")
check '["second"]' "${query[@]}" --marker "nextpartitionkey=$partition" "nextrowkey=$row"

check 'true' entity merge --table-name people --entity PartitionKey=p RowKey=second More=1 \
    --query 'contains(keys(@),`"etag"`)'
check '["z",1]' "${show[@]}" --row-key second --query '[Text,More]'
check 'true' entity replace --table-name people --entity PartitionKey=p RowKey=second Last=2 \
    --query 'contains(keys(@),`"etag"`)'
check '[null,2]' "${show[@]}" --row-key second --query '[Text,Last]'
check '{"deleted":null}' entity delete --table-name people --partition-key p --row-key second
check '["it'"'"'s&r"]' "${query[@]}"

check '' table policy create --table-name people --name readers --permissions r \
    --expiry 2099-01-01T00:00:00Z
check '["readers"]' table policy list --table-name people --query 'keys(@)'
check '"r"' table policy show --table-name people --name readers --query permission
check '' table policy update --table-name people --name readers --permissions ra
check '"ra"' table policy show --table-name people --name readers --query permission

sas=$("$az/bin/az" storage table generate-sas --name people --policy-name readers --output tsv \
    --only-show-errors)
endpoint=$(tr ';' '\n' <<<"$AZURE_STORAGE_CONNECTION_STRING" | sed -n 's/^TableEndpoint=//p')
account=$(tr ';' '\n' <<<"$AZURE_STORAGE_CONNECTION_STRING" | sed -n 's/^AccountName=//p')
key_string=$AZURE_STORAGE_CONNECTION_STRING
unset AZURE_STORAGE_CONNECTION_STRING
signed=(--table-endpoint "$endpoint" --account-name "$account" --sas-token "$sas")
check '["it'"'"'s&r"]' "${query[@]}" "${signed[@]}"
export AZURE_STORAGE_CONNECTION_STRING=$key_string
check '' table policy delete --table-name people --name readers
check '[]' table policy list --table-name people --query 'keys(@)'

check '' logging update --services t --log rwd --retention 7
check '[true,true,true,7]' logging show --services t \
    --query 'table.[read,write,delete,retentionPolicy.days]'
check '' metrics update --services t --hour true --minute true --api true --retention 3
check '[true,3]' metrics show --services t --query 'table.[minute.enabled,minute.retentionPolicy.days]'
check '' cors add --services t --origins http://example.com --methods GET PUT --max-age 60 \
    --allowed-headers 'x-ms-*' --exposed-headers x-ms-request-id
check '["http://example.com"]' cors list --services t --query '[].AllowedOrigins'
check '' cors clear --services t
check '[]' cors list --services t

check '{"deleted":true}' table delete --name others
check '{"deleted":true}' table delete --name people
check '[]' table list
echo "az $version: $checks commands, $failures of them failed"
[ "$failures" = 0 ]
