#!/bin/sh
# Build a real control plane and kubectl from pinned Go modules into hack/controlplane/bin (about 5 minutes on 2 cores).
# With KUBEBUILDER_ASSETS set, its binaries are linked instead.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=$here/bin
version=v1.36.3
mkdir -p "$bin"

if [ -n "${KUBEBUILDER_ASSETS:-}" ]; then
    for name in etcd kube-apiserver kubectl kube-controller-manager kube-scheduler; do
        [ -x "$KUBEBUILDER_ASSETS/$name" ] || {
            echo "controlplane: KUBEBUILDER_ASSETS has no $name; unset it to build all from source" >&2
            exit 1
        }
        ln -sf "$KUBEBUILDER_ASSETS/$name" "$bin/$name"
    done
    exit 0
fi

command -v go >/dev/null || {
    echo "controlplane: go was not found; install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a directory of binaries" >&2
    exit 1
}

export CGO_ENABLED=0
# Without these the server calls itself v0.0.0.
component=k8s.io/component-base/version
stamp="-X $component.gitVersion=$version -X $component.gitMajor=1 -X $component.gitMinor=36"

build() { # DIRECTORY PACKAGE [NAME]
    target=$bin/${3:-$(basename "$2")}
    [ -z "$(find "$target" -newer "$here/$1/go.sum" 2>/dev/null)" ] || return 0
    echo "controlplane: building $(basename "$target")"
    (cd "$here/$1" && go build -trimpath -ldflags "-s -w $stamp" -o "$target" "$2")
}

for command in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    build kubernetes "k8s.io/kubernetes/cmd/$command"
done
build etcd go.etcd.io/etcd/server/v3 etcd
