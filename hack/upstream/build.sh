#!/bin/sh
# Build into hack/upstream/bin: TiDB Operator v1.6 (about 5 minutes of CPU time), the controller of Advanced
# StatefulSets, and a program that answers with the ordinals of Advanced StatefulSets, from pinned sources.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/bin/tidb-controller-manager
controller=$here/bin/advanced-statefulset-controller
# v0.7.0, the image of v1.6's chart; its module replaces a part of itself, so that `go install` refuses it
advanced=a2789df719b04e7efc7b0dc89445fd4701d04d0f

command -v go >/dev/null || {
    echo "upstream: go was not found; install Go 1.26 or newer" >&2
    exit 1
}

cd "$here"
if [ -z "$(find bin/ordinals -newer ordinals/main.go -newer go.sum 2>/dev/null)" ]; then
    echo "upstream: building the ordinals of Advanced StatefulSets"
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ordinals ./ordinals
fi

if [ "$(cat "$controller.commit" 2>/dev/null)" != "$advanced" ]; then
    echo "upstream: building the controller of Advanced StatefulSets"
    sources=$(mktemp -d)
    trap 'rm -rf "$sources"' EXIT
    # ADVANCED_STATEFULSET_GIT: another clone of the repository
    repository=${ADVANCED_STATEFULSET_GIT:-https://github.com/pingcap/advanced-statefulset}
    git -C "$sources" init -q
    if GIT_TERMINAL_PROMPT=0 timeout 60 git -C "$sources" fetch -q --depth 1 "$repository" "$advanced"; then
        git -C "$sources" -c advice.detachedHead=false checkout -q "$advanced"
        (cd "$sources" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$controller" ./cmd/controller-manager)
        echo "$advanced" >"$controller.commit"
    else
        echo "upstream: $repository cannot be fetched; without that controller its tests skip" >&2
    fi
fi

[ -z "$(find "$target" -newer go.sum 2>/dev/null)" ] || exit 0
echo "upstream: building TiDB Operator v1.6"
# it takes no proxy: tests write a file of hosts into its working directory, by which it finds the sandbox's servers
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X net.hostsFilePath=hosts" -o "$target" \
    github.com/pingcap/tidb-operator/cmd/controller-manager
