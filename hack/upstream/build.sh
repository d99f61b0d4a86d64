#!/bin/sh
# Build into hack/upstream/bin: TiDB Operator v1.6 (about 5 minutes of CPU time), and a program that answers with the
# ordinals of Advanced StatefulSets, from pinned sources.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/bin/tidb-controller-manager

command -v go >/dev/null || {
    echo "upstream: go was not found; install Go 1.26 or newer" >&2
    exit 1
}

cd "$here"
if [ -z "$(find bin/ordinals -newer ordinals/main.go -newer go.sum 2>/dev/null)" ]; then
    echo "upstream: building the ordinals of Advanced StatefulSets"
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ordinals ./ordinals
fi

[ -z "$(find "$target" -newer go.sum 2>/dev/null)" ] || exit 0
echo "upstream: building TiDB Operator v1.6"
# it takes no proxy: tests write a file of hosts into its working directory, by which it finds the sandbox's servers
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X net.hostsFilePath=hosts" -o "$target" \
    github.com/pingcap/tidb-operator/cmd/controller-manager
