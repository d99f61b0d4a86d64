# Discovery knows the PD members in the other Kubernetes clusters, too.
if verified=$(ask_discovery "verify/$(encoded "$PD")") && [ -n "$verified" ]; then
    PD=$verified
fi
