# Discovery knows the PD members in the other Kubernetes clusters, too.
until verified=$(ask_discovery "verify/$(encoded "$PD")") && [ -n "$verified" ]; do
    echo "waiting for Discovery to verify the address of PD, $PD"
    sleep "$(random_below 5)"
done
PD=$verified
