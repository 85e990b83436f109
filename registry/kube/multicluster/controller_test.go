// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/kube/multicluster"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// scene is a controller that follows the Secrets of a real API server, which is
// the remote clusters, too.
type scene struct {
	*testing.T
	client     kubernetes.Interface
	config     *rest.Config
	namespace  string
	registries *aggregate.Controller
	clusters   *multicluster.Controller
	// index is the endpoint index of the registries.
	index *xdsupdate.EndpointIndex
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneWith(t, multicluster.Options{SyncTimeout: 2 * time.Second, OwnCluster: "own"})
}

func newSceneWith(t *testing.T, options multicluster.Options) *scene {
	t.Helper()
	server := apiserver.Server(t)
	client, err := kubernetes.NewForConfig(restConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	pusher := xdsupdate.NewPusher(func(*xdsupdate.PushRequest) {})
	s := &scene{
		T: t, client: client, config: restConfig(server.Config()), namespace: server.Namespace(t),
		registries: aggregate.NewController(aggregate.Options{Updater: pusher}), index: pusher.Index(),
	}
	options.Namespace = s.namespace
	s.clusters = multicluster.New(client, s.registries, options)
	run(t, s.clusters.Run, s.registries.Run)
	_, err = client.CoreV1().Services(s.namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs what blocks until the test ends, or end is called.
func run(t *testing.T, all ...func(stop <-chan struct{})) (end func()) {
	t.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, f := range all {
		running.Go(func() { f(stop) })
	}
	end = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	t.Cleanup(end)
	return end
}

// kubeconfigOf returns the kubeconfig of a server.
func kubeconfigOf(t *testing.T, c *rest.Config) []byte {
	t.Helper()
	out := api.NewConfig()
	out.Clusters["c"] = &api.Cluster{Server: c.Host, InsecureSkipTLSVerify: true}
	out.AuthInfos["u"] = &api.AuthInfo{
		Token: c.BearerToken, Impersonate: c.Impersonate.UserName, ImpersonateGroups: c.Impersonate.Groups,
	}
	out.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	out.CurrentContext = "x"
	data, err := clientcmd.Write(*out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (s *scene) put(name string, data map[string][]byte) {
	s.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"istio/multiCluster": "true"}}, Data: data,
	}
	secrets := s.client.CoreV1().Secrets(s.namespace)
	if _, err := secrets.Update(s.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(s.Context(), secret, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) delete(name string) {
	s.Helper()
	if err := s.client.CoreV1().Secrets(s.namespace).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) await(what string, holds func() bool) {
	s.Helper()
	deadline := time.After(60 * time.Second)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			s.Fatalf("%s: it does not come; clusters %+v", what, s.clusters.Clusters())
		}
	}
}

func (s *scene) state(id registry.ClusterID) (multicluster.Cluster, bool) {
	for _, c := range s.clusters.Clusters() {
		if c.ID == id {
			return c, true
		}
	}
	return multicluster.Cluster{}, false
}

func (s *scene) awaitState(id registry.ClusterID, want multicluster.State) multicluster.Cluster {
	s.Helper()
	var got multicluster.Cluster
	s.await(string(id)+" "+string(want), func() bool {
		got, _ = s.state(id)
		return got.State == want
	})
	return got
}

// has reports whether the service is seen in a cluster.
func (s *scene) has(id registry.ClusterID) bool {
	service := s.registries.GetService(registry.Hostname("shop." + s.namespace + ".svc.cluster.local"))
	return service != nil && len(service.ClusterVIPs[id]) > 0
}

func TestClustersComeAndGo(t *testing.T) {
	// With a time-out, a registry that is read slowly would replace one that was read.
	s := newSceneWith(t, multicluster.Options{SyncTimeout: time.Hour})
	s.await("the secrets", s.clusters.HasSynced)
	s.put("one", map[string][]byte{"east": kubeconfigOf(t, s.config)})
	s.awaitState("east", multicluster.Synced)
	s.await("the service of east", func() bool { return s.has("east") })

	// A second cluster, and a new kubeconfig of the first: its registry is another one.
	s.put("two", map[string][]byte{"west": kubeconfigOf(t, s.config)})
	s.await("the service of west", func() bool { return s.has("west") })
	before, _ := s.state("east")
	s.put("one", map[string][]byte{"east": append(kubeconfigOf(t, s.config), "\n# rotated\n"...)})
	s.await("another registry", func() bool {
		now, _ := s.state("east")
		if !s.has("east") {
			t.Error("the service was lost while the registry was replaced")
		}
		return now.Registry != nil && now.Registry != before.Registry
	})

	s.delete("one")
	s.await("the end of east", func() bool { _, there := s.state("east"); return !there && !s.has("east") })
	if !s.has("west") {
		t.Error("west went with east")
	}
	s.delete("two")
	s.await("the end of the service", func() bool {
		return len(s.registries.Services()) == 0 && len(s.registries.Registries()) == 0
	})
}

// A problem of one cluster is reported, and does not affect other clusters.
func TestBrokenClusters(t *testing.T) {
	s := newScene(t)
	front := apiserver.Server(t).Front(t)
	front.Refuse(true)
	exec := strings.Replace(string(kubeconfigOf(t, s.config)), "    token: "+s.config.BearerToken,
		"    exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/nowhere/ever], interactiveMode: Never}", 1)
	file := strings.Replace(string(kubeconfigOf(t, s.config)), "    token: "+s.config.BearerToken, "    tokenFile: /etc/hostname", 1)
	s.put("broken", map[string][]byte{
		"nonsense": []byte("{"), "exec": []byte(exec), "file": []byte(file), "own": kubeconfigOf(t, s.config),
		"unreachable": kubeconfigOf(t, restConfig(front.Config())), "good": kubeconfigOf(t, s.config),
	})
	s.awaitState("good", multicluster.Synced)
	for _, id := range []registry.ClusterID{"nonsense", "exec", "file", "own"} {
		if c := s.awaitState(id, multicluster.Failed); c.Err == nil {
			t.Errorf("%s: no error", id)
		} else if local := errors.Is(c.Err, multicluster.ErrLocal); local != (id == "exec" || id == "file") {
			t.Errorf("%s: %v", id, c.Err)
		}
	}
	s.awaitState("unreachable", multicluster.Late)
	if !s.clusters.HasSynced() {
		t.Error("an unreachable cluster blocks the start")
	}
	if got := len(s.registries.Registries()); got != 1 {
		t.Errorf("%d registries, want only the good one", got)
	}
	front.Refuse(false)
	s.awaitState("unreachable", multicluster.Synced)
	s.await("its service", func() bool { return s.has("unreachable") })

	// A kubeconfig that breaks leaves the registry as it is.
	s.put("broken", map[string][]byte{"good": []byte("{")})
	s.awaitState("good", multicluster.Failed)
	if !s.has("good") {
		t.Error("a broken kubeconfig took the cluster away")
	}
	s.await("the others' end", func() bool { return len(s.clusters.Clusters()) == 1 })
}
