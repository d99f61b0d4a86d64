package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const identity = "client-go"

// lead takes the Lease, holds it for a while and releases it; it says when it led, as Unix time in seconds.
func lead(ctx context.Context, config *rest.Config, lease string, hold time.Duration) (map[string]any, error) {
	namespace, name, found := strings.Cut(lease, "/")
	if !found {
		return nil, fmt.Errorf("-lease must be namespace/name, not %q", lease)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	leading, led := time.Time{}, false
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     500 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				leading, led = time.Now(), true
				select {
				case <-time.After(hold):
				case <-ctx.Done():
				}
				stop()
			},
			OnStoppedLeading: func() {},
		},
	})
	if !led {
		return nil, fmt.Errorf("%s was never had", lease)
	}
	return map[string]any{"led_from": unix(leading), "led_until": unix(time.Now())}, nil
}

func unix(moment time.Time) float64 {
	return float64(moment.UnixNano()) / 1e9
}
