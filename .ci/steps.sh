# What .ci/run and .ci/full share: named steps, and a table of their seconds when the script ends. To be sourced.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${CARGO_TARGET_DIR:-target}
tools=$target/tools
# A build from nothing is faster so, and smaller.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0

# What only checks links nothing: an empty file stands for the library of the feature `jemalloc`, whose build from C takes more than a minute.
mkdir -p "$tools"
: >"$tools/libjemalloc.a"
unlinked() {
    JEMALLOC_OVERRIDE=$(cd "$tools" && pwd)/libjemalloc.a "$@"
}

# The packages that are published.
# shellcheck disable=SC2034 # both scripts use it
published=(tablesdk-protocol tablesdk-derive tablesdk tablesdk-server tablesdk-cli)

# beside NAME COMMAND...: starts a command beside the steps. joined NAME waits for it, and prints what it has printed.
declare -A started=()
beside() {
    local name=$1
    shift
    "$@" >"$tools/$name.log" 2>&1 &
    started[$name]=$!
}
joined() {
    local status=0
    wait "${started[$1]}" || status=$?
    cat "$tools/$1.log"
    return "$status"
}

step_name=
step_began=0
step_table=()

end_step() {
    if [ -n "$step_name" ]; then
        step_table+=("$(printf '%6d  %s' $((SECONDS - step_began)) "$step_name")")
    fi
    step_name=
}

# step NAME: the steps before it are over, since a step that fails ends the script.
step() {
    end_step
    step_name=$*
    step_began=$SECONDS
    printf '\n=== %s\n' "$step_name"
}

report() {
    local status=$? failed=$step_name
    # What still runs beside the steps.
    jobs -p | xargs -r kill 2>/dev/null || true
    end_step
    printf '\n=== seconds of each step of %s\n' "$0"
    printf '%s\n' "${step_table[@]}"
    printf '%6d  in all\n' "$SECONDS"
    if [ "$status" -ne 0 ]; then
        printf 'FAILED: %s\n' "$failed"
    fi
}
trap report EXIT

has_postgresql() {
    [ -n "${TABLESDK_TEST_POSTGRES:-}" ] || command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null
}

# The programs only: each test process has a cluster of its own, and the system gets none.
install_postgresql() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq &&
        apt-get install -qq --no-install-recommends postgresql-common >/dev/null &&
        sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
        apt-get install -qq --no-install-recommends postgresql >/dev/null
}

# A test that needs PostgreSQL fails without it, if it can be installed here.
require_postgresql() {
    if ! has_postgresql && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing Debian's package postgresql"
        install_postgresql || echo "FAILED: apt-get"
    fi
    if has_postgresql; then
        export TABLESDK_TEST_POSTGRES_REQUIRED=1
    else
        echo "SKIPPED: PostgreSQL not found, the tests of shared databases were not run"
    fi
}
