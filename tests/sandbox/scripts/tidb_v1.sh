#!/bin/sh

# Runs a TiDB server; see https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
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
    echo "debugging: TiDB is not started."
    tail -f /dev/null
fi

POD_NAME=${POD_NAME:-$HOSTNAME}
ARGS="--store=tikv \
--advertise-address=${POD_NAME}.${HEADLESS_SERVICE_NAME}.${NAMESPACE}.svc@DOMAIN@ \
--host=0.0.0.0 \
--path=${CLUSTER_NAME}-pd:2379 \
--config=/etc/tidb/tidb.toml
"

if [[ X${BINLOG_ENABLED:-} == Xtrue ]]
then
    ARGS="${ARGS} --enable-binlog=true"
fi

SLOW_LOG_FILE=${SLOW_LOG_FILE:-""}
if [[ ! -z "${SLOW_LOG_FILE}" ]]
then
    ARGS="${ARGS} --log-slow-query=${SLOW_LOG_FILE:-}"
fi

echo "here comes tidb-server ..."
echo "/tidb-server ${ARGS}"
exec /tidb-server ${ARGS}
