#!/usr/bin/env bash
# Runs the official Go, Java, Python and JavaScript clients, and tests in these languages, against our server.
# With --all, the clients also run against our server with its tables in a database, and our client and the official ones against Azurite:
# so their expectations do not fit our server alone. Without Java, Python, Node or PostgreSQL, the script prints which steps it skips.
set -euo pipefail
all=
case "$*" in
"") ;;
--all) all=yes ;;
*)
    echo "usage: $0 [--all]" >&2
    exit 2
    ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=tests/interop
target=${CARGO_TARGET_DIR:-target}
interop=$target/interop
host=127.0.0.1 # not localhost: the official clients use the dialect of Cosmos DB there

scratch=$(mktemp -d)
services=()

# Stops what was started, the last one first.
stop() {
    local index
    for ((index = ${#services[@]} - 1; index >= 0; index--)); do
        kill "${services[index]}" 2>/dev/null || true
        wait "${services[index]}" 2>/dev/null || true
    done
    services=()
}

trap 'stop; rm -rf "$scratch"' EXIT

# start NAME PATTERN COMMAND...
# Runs the command in the background until `stop`. Returns when it has printed a line that matches
# the pattern, with that line in `line`. Later output goes to a log file: a full pipe would block the
# command.
start() {
    local name=$1 pattern=$2
    shift 2
    echo "--- starting $name"
    mkfifo "$scratch/$name"
    "$@" >"$scratch/$name" &
    services+=($!)
    exec 3<"$scratch/$name"
    # shellcheck disable=SC2053 # the pattern is meant to be one
    while IFS= read -r -t 60 line <&3; do
        if [[ $line == $pattern ]]; then
            cat <&3 >"$interop/$name.log" &
            exec 3<&-
            return
        fi
    done
    echo "FAILED: $name ended, or said nothing for a minute, before it was ready" >&2
    exit 1
}

# clients CONNECTION_STRING [OPTION]
clients() {
    local connection_string=$1
    shift
    if [ -n "$java" ]; then
        echo "--- the Java client"
        java -cp "$interop/java/classes:$interop/java/lib/*" Client "$@" "$connection_string"
    else
        echo "SKIPPED: the Java client"
    fi
    if command -v python3 >/dev/null && [ -e "$interop/python/.installed" ]; then
        echo "--- the Python client"
        "$interop/python/bin/python" "$here/client.py" "$@" "$connection_string"
    else
        echo "SKIPPED: the Python client"
    fi
    if [ -n "$node" ]; then
        echo "--- the JavaScript client"
        NODE_PATH=$interop/node/node_modules node "$here/client.mjs" "$@" "$connection_string"
    else
        echo "SKIPPED: the JavaScript client"
    fi
    if [ -e "$interop/go/.installed" ]; then
        echo "--- the Go client"
        "$interop/go/client" "$@" "$connection_string"
    else
        echo "SKIPPED: the Go client"
    fi
}

# session CONNECTION_STRING: the program `tables` in a terminal, with an account without tables.
session() {
    if command -v python3 >/dev/null; then
        echo "--- a session with the program tables"
        python3 tests/session/session.py "$target/debug" "$1"
    else
        echo "SKIPPED: a session with the program tables"
    fi
}

# agent CONNECTION_STRING: the official client of the Model Context Protocol, and the program `tables`.
agent() {
    if [ -n "$node" ]; then
        echo "--- an agent with the program tables"
        NODE_PATH=$interop/node/node_modules node "$here/mcp.mjs" "$target/debug/tables" "$1"
    else
        echo "SKIPPED: an agent with the program tables"
    fi
}

# program_of_guide LANGUAGE: the program in this language of the guide to moving from Python and JavaScript.
program_of_guide() {
    awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } /^```$/ { inside = 0 } inside' \
        tablesdk/src/guide/moving_from_python_and_javascript.md
}

"$here/install.sh"
java=
if command -v javac >/dev/null && command -v mvn >/dev/null && [ -e "$interop/java/.installed" ]; then
    java=yes
fi
node=
if command -v node >/dev/null && [ -e "$interop/node/.installed" ]; then
    node=yes
fi

echo "--- every type, between these clients and ours"
# Here and below, --workspace and an example or a test select the features of a run of all tests, so that nothing is built twice.
foreign=()
if [ -n "$java" ]; then
    foreign+=(java_)
fi
if command -v python3 >/dev/null && [ -e "$interop/python/.installed" ]; then
    foreign+=(python)
fi
if [ -n "$node" ]; then
    foreign+=(javascript)
fi
if [ -e "$interop/go/.installed" ]; then
    foreign+=(go_)
fi
if [ ${#foreign[@]} -gt 0 ]; then
    cargo test -q --workspace --test foreign -- --ignored "${foreign[@]}" || exit 1
fi

cargo build -q --workspace --bin tablesdk-server --bin tables --example first_program
start tablesdk-server '*connection string: *' "$target/debug/tablesdk-server" --port 0
session "${line#*connection string: }"
agent "${line#*connection string: }"
clients "${line#*connection string: }"
stop

if command -v python3 >/dev/null && [ -e "$interop/python/.installed" ]; then
    echo "--- the program in Python of the guide"
    program_of_guide python >"$scratch/guide.py"
    start tablesdk-server-for-python '*connection string: *' "$target/debug/tablesdk-server" --port 0
    AZURE_STORAGE_CONNECTION_STRING=${line#*connection string: } "$interop/python/bin/python" "$scratch/guide.py"
    stop
fi
if [ -n "$node" ]; then
    echo "--- the program in JavaScript of the guide"
    program_of_guide javascript >"$interop/node/guide.mjs" # beside the packages that it imports
    start tablesdk-server-for-javascript '*connection string: *' "$target/debug/tablesdk-server" --port 0
    AZURE_STORAGE_CONNECTION_STRING=${line#*connection string: } node "$interop/node/guide.mjs"
    stop
fi

echo "--- the clients and the flavor Cosmos DB, with the address of its emulator"
key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==
start tablesdk-server-as-cosmos-db '*listens on *' "$target/debug/tablesdk-server" --port 0 --flavor cosmos-db \
    --account "localhost:$key" --account "java:$key"
port=${line#*listens on http://*:}
port=${port%%/*}
cosmos() {
    echo "DefaultEndpointsProtocol=http;AccountName=$1;AccountKey=$key;TableEndpoint=http://$2:$port/"
}
if [ -n "$java" ]; then
    host_name=java.table.cosmos.azure.localhost
    echo "$host $host_name" >"$scratch/hosts"
    java "-Djdk.net.hosts.file=$scratch/hosts" -cp "$interop/java/classes:$interop/java/lib/*" \
        Cosmos "$(cosmos java "$host_name")"
fi
if command -v python3 >/dev/null && [ -e "$interop/python/.installed" ]; then
    "$interop/python/bin/python" "$here/cosmos.py" "$(cosmos localhost localhost)"
fi
if [ -n "$node" ]; then
    NODE_PATH=$interop/node/node_modules node "$here/cosmos.mjs" "$(cosmos localhost localhost)"
fi
stop

echo "--- tests in other languages, with the kit of our server"
TABLESDK_SERVER=$(cd "$target/debug" && pwd)/tablesdk-server
export TABLESDK_SERVER
if command -v go >/dev/null && [ -e "$interop/go/.installed" ]; then
    echo "--- tests in Go"
    (cd examples/other_languages/go && go test -count=1 .) || exit 1
else
    echo "SKIPPED: tests in Go"
fi
if [ -n "$java" ]; then
    echo "--- tests in Java"
    # Maven takes a relative path for one below the project.
    java_full=$(cd "$interop/java" && pwd)
    mvn --quiet --offline --batch-mode "-Dmaven.repo.local=$java_full/repository" "-Doutput=$java_full/kit" \
        --file examples/other_languages/java/pom.xml test
else
    echo "SKIPPED: tests in Java"
fi
others=examples/other_languages
if [ -n "$node" ]; then
    echo "--- tests in JavaScript"
    NODE_PATH=$(cd "$interop" && pwd)/node/node_modules node --test "$others"/javascript/*.test.mjs
else
    echo "SKIPPED: tests in JavaScript"
fi
if command -v python3 >/dev/null && [ -e "$interop/python/.installed" ]; then
    echo "--- tests in Python, and the description of the kit"
    # The fixture of the examples, also for the description.
    pytest=("$interop/python/bin/python" -B -m pytest --quiet -p no:cacheprovider)
    "${pytest[@]}" --rootdir "$others/python" "$others/python"
    PYTHONPATH=$others/python "${pytest[@]}" --rootdir "$here" -p conftest "$here/test_kit.py"
else
    echo "SKIPPED: tests in Python, and the description of the kit"
fi

if [ -z "$all" ]; then
    exit
fi

start tablesdk-server-with-a-directory '*connection string: *' "$target/debug/tablesdk-server" --port 0 --data "$scratch/data"
session "${line#*connection string: }"
stop

if [ -n "${TABLESDK_TEST_POSTGRES:-}" ] || command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then
    echo "--- the same with tables in a database"
    if [ ${#foreign[@]} -gt 0 ]; then
        # The test of expiry reads a dump of all entities, which a server over a database does not offer.
        TABLESDK_TEST_STORE=postgres cargo test -q --workspace --test foreign -- --ignored "${foreign[@]}" --skip expiry || exit 1
    fi
    cargo build -q --workspace --example postgres
    start postgres 'database: *' "$target/debug/examples/postgres"
    start tablesdk-server-over-it '*connection string: *' "$target/debug/tablesdk-server" --port 0 --store "${line#database: }"
    session "${line#*connection string: }"
    clients "${line#*connection string: }"
    stop
else
    echo "SKIPPED: the clients and a server over PostgreSQL"
fi

if [ -z "$node" ]; then
    echo "SKIPPED: our client against Azurite"
    exit
fi
# With port 0, Azurite does not print the port.
port=$(node -e '
    const server = net.createServer().listen(0, process.argv[1], () => {
        console.log(server.address().port);
        server.close();
    });' "$host")
export AZURITE_ACCOUNTS="devstoreaccount1:$key;session:$key"
start azurite '*successfully started*' "$interop/node/node_modules/.bin/azurite-table" \
    --inMemoryPersistence --skipApiVersionCheck --disableTelemetry \
    --tableHost "$host" --tablePort "$port"
# The development account.
account=devstoreaccount1
azurite="DefaultEndpointsProtocol=http;AccountName=$account;AccountKey=$key"
azurite="$azurite;TableEndpoint=http://$host:$port/$account"
# First: they need an account without tables.
echo "--- the tests of our client against Azurite, but for what is listed in tests/harness/azurite.rs"
TABLESDK_TEST_ENDPOINT=$azurite cargo test -q --workspace --no-fail-fast --test entities --test operations --test patterns --test resilience elsewhere -- --ignored || exit 1
echo "--- the flavor of our server like Azurite"
cargo test -q --workspace --test kit azurite_is_as_its_flavor -- --ignored || exit 1
clients "$azurite" --azurite
echo "--- our client against Azurite"
cargo build -q --workspace --bin quickstart --example sas
"$target/debug/quickstart" "$azurite"
"$target/debug/examples/sas" "$azurite" || exit
session "DefaultEndpointsProtocol=http;AccountName=session;AccountKey=$key;TableEndpoint=http://$host:$port/session"
agent "$azurite"
echo "--- every type and awkward key through Azurite and back"
TABLESDK_TRANSFER_ENDPOINT=$azurite cargo test -q --workspace --test transfer another_endpoint_and_back -- --ignored
stop
echo "--- the file in which Azurite stores its tables"
TABLESDK_AZURITE=$interop/node/node_modules/.bin/azurite-table cargo test -q --workspace --test transfer what_azurite_has_stored_is_imported -- --ignored
