#!/bin/sh
# Build TiDB Operator v1.6 from a pinned Go module into hack/upstream/bin (about 5 minutes of CPU time).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/bin/tidb-controller-manager

command -v go >/dev/null || {
    echo "upstream: go was not found; install Go 1.26 or newer" >&2
    exit 1
}

[ -z "$(find "$target" -newer "$here/go.sum" 2>/dev/null)" ] || exit 0
echo "upstream: building TiDB Operator v1.6"
cd "$here"
# it takes no proxy: tests write a file of hosts into its working directory, by which it finds the sandbox's servers
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X net.hostsFilePath=hosts" -o "$target" \
    github.com/pingcap/tidb-operator/cmd/controller-manager
