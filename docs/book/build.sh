#!/usr/bin/env bash
# Builds the book into `book/html` of the target directory: the guides, and the API documentation to which they lead. It needs Python
# 3, and installs mdBook into the target directory if this version is missing.
#
#   docs/book/build.sh [--open]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=0.5.4
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
tools=$target/tools
book=$target/book
mdbook=$tools/bin/mdbook
if [ "$(mdbook --version 2>/dev/null)" = "mdbook v$version" ]; then
    mdbook=$(command -v mdbook)
elif [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
    cargo install --quiet --locked --root "$tools" "mdbook@$version"
fi

# Rustdoc leaves the pages of crates and items that are no longer documented.
rm -rf "$target/doc"
# Nothing is linked: an empty file stands for the library of the feature `jemalloc`.
mkdir -p "$tools"
: >"$tools/libjemalloc.a"
JEMALLOC_OVERRIDE=$(cd "$tools" && pwd)/libjemalloc.a \
    cargo doc --locked --no-deps --all-features -p tablesdk -p tablesdk-derive -p tablesdk-server -p tablesdk-protocol -p tablesdk-cli

rm -rf "$book"
mkdir -p "$book"
python3 docs/book/assemble.py "$target/doc" "$book"
cp docs/book/book.toml docs/book/book.css "$book"
"$mdbook" build --dest-dir "$book/html" "$book"
cp -r "$target/doc" "$book/html/api"
python3 docs/book/links.py "$book/html"
echo "The book: $book/html/index.html"
if [ "${1:-}" = --open ]; then
    python3 -m webbrowser "file://$book/html/index.html"
fi
