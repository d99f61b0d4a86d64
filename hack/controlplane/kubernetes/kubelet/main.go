// Command kubelet runs a real kubelet on a container runtime of its own, which starts no processes: a container works
// as long as the sleeps in its command say, and ends as the exit in it says. So it can be recorded what a kubelet makes
// of pods (tests/sandbox/record_kubelet.py), on any machine and without rights.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	fake "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	cadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

const (
	pull   = 500 * time.Millisecond
	killed = 137
)

var (
	sleeps = regexp.MustCompile(`\bsleep (\d+)`)
	exit   = regexp.MustCompile(`\bexit (\d+)`)
)

// work is what a container does: it runs for so long and ends with a code, unless it runs on.
type work struct {
	lasts time.Duration
	code  int32
	ends  bool
}

func workOf(command string) work {
	found := work{}
	for _, match := range sleeps.FindAllStringSubmatch(command, -1) {
		seconds, _ := strconv.Atoi(match[1])
		found.lasts += time.Duration(seconds) * time.Second
	}
	if match := exit.FindStringSubmatch(command); match != nil {
		code, _ := strconv.Atoi(match[1])
		found.code, found.ends = int32(code), true
	}
	return found
}

type containerRuntime struct {
	*fake.FakeRuntimeService
	lock sync.Mutex
	work map[string]work
}

func (r *containerRuntime) CreateContainer(
	ctx context.Context, sandbox string, config *cri.ContainerConfig, of *cri.PodSandboxConfig,
) (string, error) {
	id, err := r.FakeRuntimeService.CreateContainer(ctx, sandbox, config, of)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.work[id] = workOf(strings.Join(append(config.Command, config.Args...), " "))
	return id, err
}

func (r *containerRuntime) StartContainer(ctx context.Context, id string) error {
	if work := r.workOf(id); work.ends {
		time.AfterFunc(work.lasts, func() { r.end(id, work.code) })
	}
	return r.FakeRuntimeService.StartContainer(ctx, id)
}

// StopContainer waits in vain for a shell, which takes no SIGTERM as the first process of a container.
func (r *containerRuntime) StopContainer(_ context.Context, id string, timeout int64) error {
	time.Sleep(time.Duration(timeout) * time.Second)
	r.end(id, killed)
	return nil
}

// ExecSync runs a hook, which sleeps.
func (r *containerRuntime) ExecSync(
	_ context.Context, _ string, command []string, _ time.Duration,
) ([]byte, []byte, error) {
	time.Sleep(workOf(strings.Join(command, " ")).lasts)
	return nil, nil, nil
}

func (r *containerRuntime) workOf(id string) work {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.work[id]
}

func (r *containerRuntime) end(id string, code int32) {
	r.Lock()
	defer r.Unlock()
	container, there := r.Containers[id]
	if !there || container.State != cri.ContainerState_CONTAINER_RUNNING {
		return
	}
	container.State, container.FinishedAt = cri.ContainerState_CONTAINER_EXITED, time.Now().UnixNano()
	container.ExitCode, container.Reason = code, "Completed"
	if code != 0 {
		container.Reason = "Error"
	}
}

type registry struct{ *fake.FakeImageService }

// PullImage fails, in containerd's words, for images whose tag is missing.
func (r *registry) PullImage(
	ctx context.Context, image *cri.ImageSpec, auth *cri.AuthConfig, of *cri.PodSandboxConfig,
) (string, error) {
	time.Sleep(pull)
	if name := image.Image; strings.HasSuffix(name, ":missing") {
		return "", status.Errorf(
			codes.NotFound,
			"failed to pull and unpack image %q: failed to resolve reference %q: %s: not found", name, name, name,
		)
	}
	return r.FakeImageService.PullImage(ctx, image, auth, of)
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "a file")
	node := flag.String("node", "node", "the name of the node")
	klog.InitFlags(nil)
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	client := kubernetes.NewForConfigOrDie(config)

	options := &kubemark.HollowKubeletOptions{NodeName: *node, MaxPods: 110}
	flags, settings := kubemark.GetHollowKubeletConfig(options)
	settings.EnableServer = false
	running := &containerRuntime{FakeRuntimeService: fake.NewFakeRuntimeService(), work: map[string]work{}}
	running.FakeStatus = &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}
	images := &registry{fake.NewFakeImageService()}
	kubelet := kubemark.NewHollowKubelet(
		flags, settings, client, client, &cadvisor.Fake{NodeName: *node}, images, running,
		cm.NewStubContainerManager(),
	)
	// kubemark's are fakes: with none of them the kubelet takes its own
	kubelet.KubeletDeps.Recorder, kubelet.KubeletDeps.ProbeManager = nil, nil
	kubelet.KubeletDeps.EventClient = client.CoreV1()
	kubelet.Run(context.Background())
}
