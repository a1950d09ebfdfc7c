#!/usr/bin/env bash
# Runs all fuzz targets, or one by name, each for a number of seconds: run.sh [target] [seconds].
# With `keep` instead of the seconds, adds those inputs to the corpus in the repository that reach new code.
# New inputs are in target/fuzz/corpus/<target>, failures in target/fuzz/found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

target=${1:-all}
seconds=${2:-60}
host=$(rustc -vV | sed -n 's/^host: //p')
out=$(realpath -m "${CARGO_TARGET_DIR:-../../target}/fuzz")

# The coverage flags of cargo-fuzz, for a stable compiler.
export RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module"
for argument in level=4 inline-8bit-counters pc-table trace-compares; do
    RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-$argument"
done
# The same versions as in the workspace.
cp ../../Cargo.lock .
# With a named host target, the flags do not apply to build scripts.
cargo build --quiet --release --target "$host" --target-dir "$out"

mkdir -p "$out/found"
for source in src/bin/*.rs; do
    name=$(basename "$source" .rs)
    if [ "$target" != all ] && [ "$target" != "$name" ]; then
        continue
    fi
    mkdir -p "$out/corpus/$name"
    if [ "$seconds" = keep ]; then
        "$out/$host/release/$name" -set_cover_merge=1 -use_counters=0 -max_len=512 "corpus/$name" "$out/corpus/$name"
        continue
    fi
    printf '\n=== %s for %s seconds\n' "$name" "$seconds"
    options=(-max_total_time="$seconds" -max_len=8192 -rss_limit_mb=1024 -timeout=10 -artifact_prefix="$out/found/$name-")
    "$out/$host/release/$name" "${options[@]}" -dict="dictionaries/$name" "$out/corpus/$name" "corpus/$name"
done
