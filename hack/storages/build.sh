#!/bin/sh
# Get the servers that tests of object storage run: fake-gcs-server (a pinned Go module, built into hack/storages/bin)
# and Azurite (from npm, by its lock). About 90 s on 2 cores. S3 is moto's, which setup.cfg brings.
set -eu

here=$(cd "$(dirname "$0")" && pwd)

command -v go >/dev/null || {
    echo "storages: go was not found; install Go 1.26 or newer" >&2
    exit 1
}
command -v npm >/dev/null || {
    echo "storages: npm was not found; install Node.js 20 or newer (Debian: apt-get install npm)" >&2
    exit 1
}

server=$here/bin/fake-gcs-server
if [ -z "$(find "$server" -newer "$here/go.sum" 2>/dev/null)" ]; then
    echo "storages: building fake-gcs-server"
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$server" github.com/fsouza/fake-gcs-server)
fi
if [ -z "$(find "$here/node_modules/.package-lock.json" -newer "$here/package-lock.json" 2>/dev/null)" ]; then
    echo "storages: installing Azurite"
    (cd "$here" && npm ci --silent --no-audit --no-fund)
fi
