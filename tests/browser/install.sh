#!/usr/bin/env bash
# Installs what drives a browser below the target directory, pinned by package-lock.json, and Debian's packages chromium and
# fonts-noto-color-emoji where they are missing and can be installed. Does nothing if all of it is there. Without Node or Chromium, the
# script prints which step it skips.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=tests/browser
browser=${CARGO_TARGET_DIR:-target}/browser
mkdir -p "$browser"

missing=()
command -v chromium >/dev/null || missing+=(chromium)
# Without a font for them, a picture would show boxes in the place of emoji.
compgen -G '/usr/share/fonts/truetype/noto/NotoColorEmoji*' >/dev/null || missing+=(fonts-noto-color-emoji)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Debian's packages: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -qq --no-install-recommends "${missing[@]}" >/dev/null; } || echo "FAILED: apt-get"
fi
if ! command -v chromium >/dev/null; then
    echo "SKIPPED: chromium not found, the page was not tried in a browser"
fi

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "SKIPPED: node or npm not found, the page was not tried in a browser"
elif ! node -e 'process.exit(Number.parseInt(process.versions.node) < 20 ? 1 : 0)'; then
    echo "SKIPPED: node is older than 20, the page was not tried in a browser"
elif ! cmp -s "$here/package-lock.json" "$browser/node/.installed"; then
    echo "installing the driver of the browser"
    rm -rf "$browser/node"
    mkdir "$browser/node"
    cp "$here/package.json" "$here/package-lock.json" "$browser/node"
    (cd "$browser/node" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    # Copied last, so an interrupted installation does not count.
    cp "$here/package-lock.json" "$browser/node/.installed"
fi
