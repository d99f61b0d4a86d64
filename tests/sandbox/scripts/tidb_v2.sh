#!/bin/sh

set -uo pipefail

INFO="/etc/podinfo/annotations"
if [[ ! -f "${INFO}" ]]
then
    echo "no ${INFO} in this pod, giving up."
    exit 1
fi
source ${INFO} 2>/dev/null

TIDB_POD=${POD_NAME:-$HOSTNAME}

ARGS="--store=tikv \
--advertise-address=${TIDB_POD}.basic-tidb-peer.default.svc@DOMAIN@ \
--host=0.0.0.0 \
--path=basic-pd:2379 \
--config=/etc/tidb/tidb.toml"

if [ ! -z "${SLOW_LOG_FILE:-}" ]; then
    ARGS="${ARGS} --log-slow-query=${SLOW_LOG_FILE}"
fi

echo "here comes tidb-server ..."
echo "/tidb-server ${ARGS}"
exec /tidb-server ${ARGS}
