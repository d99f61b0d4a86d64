// Fills one client-go shared informer and says what it cost, as one line of JSON:
//
//	peers -kubeconfig FILE -informer typed|dynamic [-resource group/version/plural]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 5 * time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	kind := flag.String("informer", "typed", "typed (pods only) or dynamic")
	resource := flag.String("resource", "/v1/pods", "group/version/plural")
	flag.Parse()
	if err := run(*kubeconfig, *kind, *resource); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, kind, resource string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	started := time.Now()
	informer, err := newInformer(config, kind, resource)
	if err != nil {
		return err
	}
	if err := informer.AddIndexers(cache.Indexers{"instance": byInstance}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go informer.Run(ctx.Done())
	// WaitForCacheSync looks every 100 ms only, which would be counted against client-go
	for !informer.HasSynced() {
		if ctx.Err() != nil {
			return fmt.Errorf("%s not synced after %s", resource, patience)
		}
		time.Sleep(time.Millisecond)
	}
	return report(time.Since(started), len(informer.GetStore().ListKeys()))
}

func newInformer(config *rest.Config, kind, resource string) (cache.SharedIndexInformer, error) {
	switch kind {
	case "typed":
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
	case "dynamic":
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
	default:
		return nil, fmt.Errorf("-informer must be typed or dynamic, not %q", kind)
	}
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

func report(wall time.Duration, objects int) error {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	peak, err := peakMegabytes()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds":     wall.Seconds(),
		"cpu_seconds": float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9,
		"peak_mb":     peak,
		"objects":     objects,
	})
}

func peakMegabytes() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseFloat(fields[1], 64)
			return kilobytes / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
