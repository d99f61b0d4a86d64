package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func fillInformer(ctx context.Context, config *rest.Config, mode, resource string) (map[string]any, error) {
	informer, err := newInformer(config, mode, resource)
	if err != nil {
		return nil, err
	}
	if err := informer.AddIndexers(cache.Indexers{"instance": byInstance}); err != nil {
		return nil, err
	}
	go informer.Run(ctx.Done())
	// WaitForCacheSync looks every 100 ms only, which would be counted against client-go
	for !informer.HasSynced() {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s not synced after %s", resource, patience)
		}
		time.Sleep(time.Millisecond)
	}
	return map[string]any{"objects": len(informer.GetStore().ListKeys())}, nil
}

func newInformer(config *rest.Config, mode, resource string) (cache.SharedIndexInformer, error) {
	if mode == "typed" {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(resource, "/", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("-resource must be group/version/plural, not %q", resource)
	}
	what := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(what).Informer(), nil
}

func byInstance(obj any) ([]string, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if instance := object.GetLabels()["app.kubernetes.io/instance"]; instance != "" {
		return []string{object.GetNamespace() + "/" + instance}, nil
	}
	return nil, nil
}
