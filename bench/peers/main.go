// Speaks to an API server as client-go does, and says in one line of JSON what it saw and cost:
//
//	peers -kubeconfig FILE -mode discovery
//	peers -kubeconfig FILE -mode typed                                      (an informer of pods)
//	peers -kubeconfig FILE -mode dynamic [-resource group/version/plural]   (an informer of anything)
//	peers -kubeconfig FILE -mode lease -lease NAMESPACE/NAME [-hold 5s]     (leads, and releases)
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 5 * time.Minute

type options struct {
	mode     string
	resource string
	lease    string
	hold     time.Duration
}

func main() {
	var asked options
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.StringVar(&asked.mode, "mode", "typed", "discovery, typed, dynamic or lease")
	flag.StringVar(&asked.resource, "resource", "/v1/pods", "group/version/plural of a dynamic informer")
	flag.StringVar(&asked.lease, "lease", "default/peers", "namespace/name of the Lease")
	flag.DurationVar(&asked.hold, "hold", 5*time.Second, "for how long to lead")
	flag.Parse()
	if err := run(*kubeconfig, asked); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string, asked options) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	started := time.Now()
	seen, err := carryOut(ctx, config, asked)
	if err != nil {
		return err
	}
	seen["seconds"] = time.Since(started).Seconds()
	if err := addCost(seen); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(seen)
}

func carryOut(ctx context.Context, config *rest.Config, asked options) (map[string]any, error) {
	switch asked.mode {
	case "discovery":
		return discover(config)
	case "typed", "dynamic":
		return fillInformer(ctx, config, asked.mode, asked.resource)
	case "lease":
		return lead(ctx, config, asked.lease, asked.hold)
	default:
		return nil, fmt.Errorf("-mode must be discovery, typed, dynamic or lease, not %q", asked.mode)
	}
}
