# The container runtime sets HOSTNAME; with hostNetwork the pod does.
# shellcheck disable=SC3028
POD=${HOSTNAME:-$(hostname)}
