// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// nodeName is that of the one Node.
const nodeName = "node"

// patience is how long waiting may take, on a busy machine.
const patience = 60 * time.Second

// echoImage is the image whose program is there. Deployments of others have no Pods.
const echoImage = "registry.k8s.io/gateway-api/echo-basic:"

// node is a kubelet, and those controllers of a cluster that the suite needs: it runs the
// Pods of Deployments, and keeps the EndpointSlices of Services.
type node struct {
	client    kubernetes.Interface
	network   *network
	logger    *slog.Logger
	echo      string // the program
	dir       string // where Pods have their files
	informers informers.SharedInformerFactory
	changed   chan struct{}
	logs      sync.Map // *podLog by "namespace/name"

	mu   sync.Mutex
	pods map[string]*replica // by "namespace/deployment/index"
}

// replica is a Pod of a Deployment.
type replica struct {
	namespace, name string
	template        *corev1.PodTemplateSpec
	container       *container // nil: it is starting, or could not
}

func newNode(client kubernetes.Interface, network *network, echo, dir string, logger *slog.Logger) *node {
	n := &node{
		client: client, network: network, logger: logger, echo: echo, dir: dir,
		informers: informers.NewSharedInformerFactory(client, 0), changed: make(chan struct{}, 1), pods: map[string]*replica{},
	}
	for _, informer := range []cache.SharedIndexInformer{
		n.informers.Apps().V1().Deployments().Informer(), n.informers.Core().V1().Pods().Informer(), n.informers.Core().V1().Services().Informer(),
		n.informers.Core().V1().Secrets().Informer(), n.informers.Core().V1().ConfigMaps().Informer(), n.informers.Discovery().V1().EndpointSlices().Informer(),
	} {
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // It has not been stopped.
			AddFunc: func(any) { n.signal() }, UpdateFunc: func(any, any) { n.signal() }, DeleteFunc: func(any) { n.signal() },
		})
	}
	return n
}

func (n *node) signal() {
	select {
	case n.changed <- struct{}{}:
	default: // One look is enough.
	}
}

// Run runs the Pods of the API server until ctx ends; then all of them have ended.
func (n *node) Run(ctx context.Context) {
	n.informers.Start(ctx.Done())
	n.informers.WaitForCacheSync(ctx.Done())
	var starting sync.WaitGroup
	for ctx.Err() == nil {
		n.reconcilePods(ctx, &starting)
		if err := n.reconcileSlices(ctx); err != nil && ctx.Err() == nil {
			n.logger.Warn("EndpointSlices", slog.Any("error", err))
			starting.Go(func() { n.later(ctx) })
		}
		select {
		case <-n.changed:
		case <-ctx.Done():
		}
	}
	starting.Wait()
	n.stopAll()
	n.informers.Shutdown()
}

// later has the node look again after a while.
func (n *node) later(ctx context.Context) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		n.signal()
	case <-ctx.Done():
	}
}

func (n *node) stopAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.pods {
		if r.container != nil {
			r.container.stop()
		}
	}
}

// reconcilePods starts the missing Pods of Deployments, and ends superfluous ones.
func (n *node) reconcilePods(ctx context.Context, starting *sync.WaitGroup) {
	deployments, err := n.informers.Apps().V1().Deployments().Lister().List(labels.Everything())
	if err != nil {
		n.logger.Warn("Deployments", slog.Any("error", err))
		return
	}
	wanted := map[string]*appsv1.Deployment{}
	for _, d := range deployments {
		if !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, echoImage) || d.DeletionTimestamp != nil {
			continue
		}
		for i := range *d.Spec.Replicas {
			wanted[fmt.Sprintf("%s/%s/%d", d.Namespace, d.Name, i)] = d
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, r := range n.pods {
		d := wanted[key]
		if r.container != nil && (d == nil || r.template != &d.Spec.Template && !sameTemplate(r.template, &d.Spec.Template)) {
			delete(n.pods, key)
			starting.Go(func() { n.end(ctx, r.namespace, r.name, r.container) })
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		d := wanted[key]
		if n.pods[key] != nil {
			continue
		}
		files, err := n.files(d.Namespace, &d.Spec.Template.Spec)
		if err != nil {
			continue // A change of a missing object makes the node look again.
		}
		n.pods[key] = &replica{namespace: d.Namespace, template: &d.Spec.Template}
		starting.Go(func() { n.start(ctx, key, d, files) })
	}
}

func sameTemplate(a, b *corev1.PodTemplateSpec) bool { return a.String() == b.String() }

// start starts a Pod of a Deployment.
func (n *node) start(ctx context.Context, key string, d *appsv1.Deployment, files map[string][]byte) {
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = d.Namespace, d.Name+"-"+string(d.UID[:8])+"-"+key[strings.LastIndexByte(key, '/')+1:]
	c, err := n.run(ctx, pod, "", func(string) (*exec.Cmd, error) {
		root, err := os.MkdirTemp(n.dir, pod.Name)
		if err != nil {
			return nil, err
		}
		return command(root, n.echo, pod, files)
	}, func(ctx context.Context, address string) bool { return accepts(ctx, address, "3000") })
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		delete(n.pods, key)
		if ctx.Err() == nil {
			n.logger.Error("Pod does not start", slog.String("pod", pod.Namespace+"/"+pod.Name), slog.Any("error", err))
		}
		return
	}
	r := n.pods[key]
	r.name, r.container = pod.Name, c
	n.signal()
}

// files returns the files of a Pod below the paths of its volumes, or the error that one is
// missing.
func (n *node) files(namespace string, spec *corev1.PodSpec) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, mount := range spec.Containers[0].VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 {
			return nil, fmt.Errorf("no volume %s", mount.Name)
		}
		data, items, err := n.volume(namespace, &spec.Volumes[i])
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			content, has := data[item.Key]
			if !has {
				return nil, fmt.Errorf("volume %s has no %s", mount.Name, item.Key)
			}
			out[filepath.Join(mount.MountPath, item.Path)] = content
		}
	}
	return out, nil
}

// volume returns the content of a volume.
func (n *node) volume(namespace string, v *corev1.Volume) (map[string][]byte, []corev1.KeyToPath, error) {
	data := map[string][]byte{}
	var items []corev1.KeyToPath
	switch {
	case v.Secret != nil:
		secret, err := n.informers.Core().V1().Secrets().Lister().Secrets(namespace).Get(v.Secret.SecretName)
		if err != nil {
			return nil, nil, err
		}
		data, items = secret.Data, v.Secret.Items
	case v.ConfigMap != nil:
		configMap, err := n.informers.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace).Get(v.ConfigMap.Name)
		if err != nil {
			return nil, nil, err
		}
		for key, value := range configMap.Data {
			data[key] = []byte(value)
		}
		items = v.ConfigMap.Items
	default:
		return nil, nil, errors.New("a volume of another type")
	}
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	return data, items, nil
}

// isGone reports whether an error says that there is no such object.
func isGone(err error) bool { return apierrors.IsNotFound(err) }
