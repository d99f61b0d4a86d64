#!/bin/sh
# Build Helm from a pinned Go module into hack/helm/bin (about 2 minutes of CPU time).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=$here/bin/helm

command -v go >/dev/null || {
    echo "helm: go was not found; install Go 1.26 or newer" >&2
    exit 1
}

[ -z "$(find "$target" -newer "$here/go.sum" 2>/dev/null)" ] || exit 0
echo "helm: building helm"
cd "$here"
# as Helm's own build does: the Kubernetes that charts are rendered for where nothing else is told
minor=$(go list -m -f '{{.Version}}' k8s.io/client-go | cut -d. -f2)
flags="-s -w"
for package in chartutil lint/rules; do
    flags="$flags -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=$minor"
done
CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$target" helm.sh/helm/v3/cmd/helm
