#!/bin/sh

set -uo pipefail

INFO="/etc/podinfo/annotations"
if [[ ! -f "${INFO}" ]]
then
    echo "no ${INFO} in this pod, giving up."
    exit 1
fi
source ${INFO} 2>/dev/null

TIKV_POD=${POD_NAME:-$HOSTNAME}

ARGS="--pd=basic-pd:2379 \
--advertise-addr=${TIKV_POD}.basic-tikv-peer.default.svc@DOMAIN@:20160 \
--addr=0.0.0.0:20160 \
--status-addr=0.0.0.0:20180 \
--data-dir=/var/lib/tikv \
--capacity=${CAPACITY} \
--config=/etc/tikv/tikv.toml"

if [ ! -z "${STORE_LABELS:-}" ]; then
  # without a blank before it, as in v1.6
  LABELS="--labels ${STORE_LABELS} "
  ARGS="${ARGS}${LABELS}"
fi

echo "here comes tikv-server ..."
echo "/tikv-server ${ARGS}"
exec /tikv-server ${ARGS}
