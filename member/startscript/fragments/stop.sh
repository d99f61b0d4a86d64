set -u

# The container runtime sets HOSTNAME; with hostNetwork it is the node's name, and POD_NAME is set.
# shellcheck disable=SC3028
POD=${POD_NAME:-${HOSTNAME:-$(hostname)}}
