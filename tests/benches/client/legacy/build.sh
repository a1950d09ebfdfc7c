#!/usr/bin/env bash
# Builds the bench of the unofficial crate `azure_data_tables` below the target directory, outside of the workspace: its dependencies are not
# those of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

target=$(cd ../../../.. && mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
package=$target/legacy-client/package
mkdir -p "$package/src"
cp Cargo.toml "$package"
cp main.rs "$package/src"
cargo build --release --manifest-path "$package/Cargo.toml" --target-dir "$target/legacy-client"
