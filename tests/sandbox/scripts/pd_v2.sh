#!/bin/sh

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

PD_POD=${POD_NAME:-$HOSTNAME}
PD_FQDN=${PD_POD}.basic-pd-peer.default.svc@DOMAIN@

lookup="dig ${PD_FQDN} A ${PD_FQDN} AAAA +search +short"
waited=0
pause=1
while true; do
    sleep ${pause}
    waited=$(( waited+pause ))

    if [[ ${waited} -ge 30 ]]; then
        echo "gave up on DNS" >&2
        exit 1
    fi

    known=$(eval "$lookup")
    if [ $? -ne 0  ]; then
        echo "DNS fails: $known"
        continue
    fi

    if [ -z "${known}" ]
    then
        echo "DNS does not know ${PD_FQDN}"
    else
        echo "DNS knows ${PD_FQDN}: $known"

        # is one of the addresses ours?
        own=($(hostname -I))
        ours=()
        while IFS= read -r line; do
            ours+=("$line")
        done <<< "$own"
        theirs=()
        while IFS= read -r line; do
            theirs+=("$line")
        done <<< "$known"
        echo "ours: ${ours[@]}, in DNS: ${theirs[@]}"

        same=false
        for each in "${theirs[@]}"
        do
            if [[ " ${ours[@]} " =~ " ${each} " ]]; then
                same=true
                break
            fi
        done
        if [ "$same" = true ]; then
            echo "it is ours"
            break
        else
            echo "it is somebody else's"
        fi
    fi
done

ARGS="--data-dir=/var/lib/pd \
--name=${PD_POD} \
--peer-urls=SCHEME://0.0.0.0:2380 \
--advertise-peer-urls=SCHEME://${PD_FQDN}:2380 \
--client-urls=SCHEME://0.0.0.0:2379 \
--advertise-client-urls=SCHEME://${PD_FQDN}:2379 \
--config=/etc/pd/pd.toml"

if [[ -f /var/lib/pd/join ]]; then
    peers=$(cat /var/lib/pd/join | tr "," "\n" | awk -F'=' '{print $2}' | tr "\n" ",")
    peers=${peers%,}
    ARGS="${ARGS} --join=${peers}"
elif [[ ! -d /var/lib/pd/member/wal ]]; then
    own_url=$(echo ${PD_FQDN}:2380 | base64 | tr "\n" " " | sed "s/ //g")

    until answer=$(wget -qO- -T 3 http://basic-discovery.default:10261/new/${own_url} 2>/dev/null); do
        echo "no answer of discovery yet ..."
        sleep $((RANDOM % 5))
    done
    ARGS="${ARGS} ${answer}"
fi

echo "here comes pd-server ..."
sleep $((RANDOM % 10))
echo "/pd-server ${ARGS}"
exec /pd-server ${ARGS}
