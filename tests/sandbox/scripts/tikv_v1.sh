#!/bin/sh

# Runs a TiKV store; see https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
set -uo pipefail

INFO="/etc/podinfo/annotations"

if [[ ! -f "${INFO}" ]]
then
    echo "no ${INFO} in this pod, giving up."
    exit 1
fi
source ${INFO} 2>/dev/null

runmode=${runmode:-normal}
if [[ X${runmode} == Xdebug ]]
then
	echo "debugging: TiKV is not started."
	tail -f /dev/null
fi

POD_NAME=${POD_NAME:-$HOSTNAME}
ARGS="--pd=SCHEME://${CLUSTER_NAME}-pd:2379 \
--advertise-addr=${POD_NAME}.${HEADLESS_SERVICE_NAME}.${NAMESPACE}.svc@DOMAIN@:20160 \
--addr=0.0.0.0:20160 \
--status-addr=0.0.0.0:20180 \
--data-dir=/var/lib/tikv \
--capacity=${CAPACITY} \
--config=/etc/tikv/tikv.toml
"

if [ ! -z "${STORE_LABELS:-}" ]; then
  LABELS=" --labels ${STORE_LABELS} "
  ARGS="${ARGS}${LABELS}"
fi

echo "here comes tikv-server ..."
echo "/tikv-server ${ARGS}"
exec /tikv-server ${ARGS}
