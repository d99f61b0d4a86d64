#!/bin/sh
# Get axe-core (from npm, by its lock), with which tests check the pages of `kubectl tidb ui` in a browser. About 2 s.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

command -v npm >/dev/null || {
    echo "axe: npm was not found; install Node.js 20 or newer (Debian: apt-get install npm)" >&2
    exit 1
}

if [ -z "$(find "$here/node_modules/.package-lock.json" -newer "$here/package-lock.json" 2>/dev/null)" ]; then
    echo "axe: installing axe-core"
    (cd "$here" && npm ci --silent --no-audit --no-fund)
fi
