set -u

# The pod's annotations, mounted by the kubelet. With `runmode: debug` the pod stays up and the server is not started,
# so that one can look around in it.
if [ ! -f /etc/podinfo/annotations ]; then
    echo "/etc/podinfo/annotations does not exist: the volume with the pod's annotations is not mounted"
    exit 1
fi
if grep -q '^runmode="debug"$' /etc/podinfo/annotations; then
    echo "entering debug mode"
    exec tail -f /dev/null
fi

# The container runtime sets HOSTNAME; with hostNetwork it is the node's name, and POD_NAME is set.
# shellcheck disable=SC3028
POD=${POD_NAME:-${HOSTNAME:-$(hostname)}}
