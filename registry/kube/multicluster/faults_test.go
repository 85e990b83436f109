// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/kube/multicluster"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// The error of a cluster is reported long before the cluster is late, and another cluster is read
// meanwhile.
func TestErrorsOfClusters(t *testing.T) {
	s := newSceneWith(t, multicluster.Options{SyncTimeout: time.Hour})
	front := apiserver.Server(t).Front(t)
	front.Hold(true)
	rejected := rest.CopyConfig(s.config)
	rejected.BearerToken = "wrong"
	s.put("clusters", map[string][]byte{
		"silent": kubeconfigOf(t, restConfig(front.Config())), "rejected": kubeconfigOf(t, rejected), "good": kubeconfigOf(t, s.config),
	})
	s.awaitState("good", multicluster.Synced)
	for id, want := range map[registry.ClusterID]string{"silent": "list services: ", "rejected": "list services: Unauthorized"} {
		s.await("the error of "+string(id), func() bool {
			c, _ := s.state(id)
			return c.State == multicluster.Connecting && c.Err != nil && strings.Contains(c.Err.Error(), want)
		})
	}
	front.Hold(false)
	if c := s.awaitState("silent", multicluster.Synced); c.Err != nil {
		t.Errorf("a cluster that has synced has the error %v", c.Err)
	}
	if c, _ := s.state("good"); c.Err != nil || s.clusters.Err() != nil {
		t.Errorf("errors %v and %v where all is well", c.Err, s.clusters.Err())
	}

	// A cluster that becomes unreachable keeps its content, and reports the error.
	s.await("its service", func() bool { return s.has("silent") })
	front.Refuse(true)
	s.await("the error", func() bool { c, _ := s.state("silent"); return c.Err != nil })
	if c, _ := s.state("silent"); c.State != multicluster.Synced || !s.has("silent") {
		t.Errorf("a cluster that is not reached any more is %s, and has its service: %t", c.State, s.has("silent"))
	}
	front.Refuse(false)
	s.await("the end of the error", func() bool { c, _ := s.state("silent"); return c.Err == nil })
}

// A kubeconfig that breaks and is mended leaves the registry as it is.
func TestMendedKubeconfig(t *testing.T) {
	s := newScene(t)
	good := kubeconfigOf(t, s.config)
	s.put("one", map[string][]byte{"east": good})
	before := s.awaitState("east", multicluster.Synced)
	s.await("its registry", func() bool { before, _ = s.state("east"); return before.Registry != nil })
	s.put("one", map[string][]byte{"east": []byte("{")})
	s.awaitState("east", multicluster.Failed)
	s.put("one", map[string][]byte{"east": good})
	after := s.awaitState("east", multicluster.Synced)
	if after.Registry != before.Registry || after.Err != nil {
		t.Errorf("the registry is another one: %t; error %v", after.Registry != before.Registry, after.Err)
	}
}

// A kubeconfig that would run programs or read files is rejected, unless that is allowed.
func TestLocalKubeconfigs(t *testing.T) {
	token := "    token: admin"
	for name, instead := range map[string]string{
		"exec":          "    exec: {apiVersion: client.authentication.k8s.io/v1, command: echo, interactiveMode: Never}",
		"auth-provider": "    auth-provider: {name: gcp}",
		"token-file":    "    tokenFile: /dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			for _, allow := range []bool{false, true} {
				s := newSceneWith(t, multicluster.Options{SyncTimeout: time.Hour, AllowLocal: allow})
				text := strings.Replace(string(kubeconfigOf(t, s.config)), token, instead, 1)
				if !strings.Contains(text, instead) {
					t.Fatalf("no token in %s", text)
				}
				s.put("one", map[string][]byte{"east": []byte(text)})
				s.await("an error", func() bool { c, _ := s.state("east"); return c.Err != nil })
				if c, _ := s.state("east"); errors.Is(c.Err, multicluster.ErrLocal) == allow {
					t.Errorf("allowed %t: %v", allow, c.Err)
				}
			}
		})
	}
}

// Secrets that cannot be read are shown. HasSynced waits for them until they may be
// read, unless they are optional.
func TestSecretsThatCannotBeRead(t *testing.T) {
	server := apiserver.Server(t)
	front := server.Front(t)
	front.Refuse(true)
	forbidden := restConfig(server.ConfigFor("nothing-allowed"))
	for name, test := range map[string]struct {
		config           *rest.Config
		optional, synced bool
	}{
		"forbidden": {forbidden, false, false}, "forbidden and optional": {forbidden, true, true},
		"unreached": {restConfig(front.Config()), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, err := kubernetes.NewForConfig(test.config)
			if err != nil {
				t.Fatal(err)
			}
			options := multicluster.Options{Optional: test.optional}
			s := &scene{T: t, clusters: multicluster.New(client, aggregate.NewController(), options)}
			run(t, s.clusters.Run)
			s.await("the error", func() bool { return s.clusters.Err() != nil })
			if test.synced {
				s.await("HasSynced", s.clusters.HasSynced)
			} else if s.clusters.HasSynced() {
				t.Error("it has synced, and knows nothing")
			}
			if err := s.clusters.Err().Error(); !strings.HasPrefix(err, "list secrets of istio-system: ") || s.clusters.Pending() != err {
				t.Errorf("error %v, pending %s", err, s.clusters.Pending())
			}
		})
	}
}

// receiver is a registry that notes the workloads of others.
type receiver struct {
	*memory.Registry
	mu    sync.Mutex
	names []string
}

func (r *receiver) WorkloadInstanceHandler(w *registry.WorkloadInstance, e registry.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = slices.DeleteFunc(r.names, func(name string) bool { return name == w.Name })
	if e != registry.EventDelete {
		r.names = append(r.names, w.Name)
	}
}

func (r *receiver) known(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.names, name)
}

// A cluster is removed while its handlers are busy and the controller stops. Handlers are
// nevertheless notified of the removal of its pods.
func TestRemovedWhileStopping(t *testing.T) {
	busy, proceed := make(chan struct{}), make(chan struct{})
	entered := sync.OnceFunc(func() { close(busy) })
	others := &receiver{Registry: memory.New()}
	s := &scene{T: t, config: restConfig(apiserver.Server(t).Config()), namespace: apiserver.Server(t).Namespace(t)}
	s.client, _ = kubernetes.NewForConfig(s.config)
	s.registries = aggregate.NewController()
	s.registries.AddRegistry(func(xdsupdate.XDSUpdater) registry.Instance { return others })
	s.clusters = multicluster.New(s.client, s.registries, multicluster.Options{
		Namespace: s.namespace,
		Created: func(k *kube.Controller) {
			k.AppendWorkloadHandler(others.WorkloadInstanceHandler)
			k.AppendWorkloadHandler(func(w *registry.WorkloadInstance, _ registry.Event) {
				if w.Namespace == s.namespace && w.Endpoint.Attributes().Labels["busy"] != "" {
					entered()
					<-proceed
				}
			})
		},
	})
	run(t, s.registries.Run)
	end := run(t, s.clusters.Run)
	s.putPod("p1", nil)
	s.put("one", map[string][]byte{"east": kubeconfigOf(t, s.config)})
	s.await("the pod", func() bool { return others.known("p1") })
	s.await("the registry", func() bool { return len(s.registries.Registries()) == 2 })
	s.putPod("p1", map[string]string{"busy": "yes"})
	<-busy
	s.delete("one")
	s.await("the removal", func() bool { return len(s.registries.Registries()) == 1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	close(proceed)
	<-ended
	s.await("the end of the pod", func() bool { return !others.known("p1") })
}

// putPod writes a pod that is ready.
func (s *scene) putPod(name string, labels map[string]string) {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	pods := s.client.CoreV1().Pods(s.namespace)
	if _, err := pods.Update(s.Context(), p, metav1.UpdateOptions{}); err != nil {
		if _, err := pods.Create(s.Context(), p, metav1.CreateOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := pods.UpdateStatus(s.Context(), p, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}
