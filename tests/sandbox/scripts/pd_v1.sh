#!/bin/sh

# Runs a PD member. How the pod's annotations get into a file is told at
# https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
#
#   runmode="normal" or "debug"
#

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
    echo "debugging: PD is not started."
    tail -f /dev/null
fi

# older pods have no POD_NAME
POD_NAME=${POD_NAME:-$HOSTNAME}
# PEER_SERVICE_NAME reads <cluster>-pd-peer
cluster=`echo ${PEER_SERVICE_NAME} | sed 's/-pd-peer//'`
fqdn="${POD_NAME}.${PEER_SERVICE_NAME}.${NAMESPACE}.svc@DOMAIN@"
finder="${cluster}-discovery.${NAMESPACE}.svc:10261"
own_url=`echo ${fqdn}:2380 | base64 | tr "\n" " " | sed "s/ //g"`
waited=0
pause=1
limit=30
while true; do
sleep ${pause}
waited=$(( waited+pause ))

if [[ ${waited} -ge ${limit} ]]
then
echo "gave up on DNS after ${limit} s" >&2
exit 1
fi

if nslookup ${fqdn} 2>/dev/null
then
echo "DNS knows ${fqdn}"
break
else
echo "DNS does not know ${fqdn}" >&2
fi
done

ARGS="--data-dir=/var/lib/pd \
--name=${POD_NAME} \
--peer-urls=SCHEME://0.0.0.0:2380 \
--advertise-peer-urls=SCHEME://${fqdn}:2380 \
--client-urls=SCHEME://0.0.0.0:2379 \
--advertise-client-urls=SCHEME://${fqdn}:2379 \
--config=/etc/pd/pd.toml \
"

if [[ -f /var/lib/pd/join ]]
then
# name=url,name=url becomes url,url
peers=`cat /var/lib/pd/join | tr "," "\n" | awk -F'=' '{print $2}' | tr "\n" ","`
peers=${peers%,}
ARGS="${ARGS} --join=${peers}"
elif [[ ! -d /var/lib/pd/member/wal ]]
then
until answer=$(wget -qO- -T 3 http://${finder}/new/${own_url} 2>/dev/null); do
echo "no answer of discovery yet ..."
sleep $((RANDOM % 5))
done
ARGS="${ARGS}${answer}"
fi

echo "here comes pd-server ..."
sleep $((RANDOM % 10))
echo "/pd-server ${ARGS}"
exec /pd-server ${ARGS}
