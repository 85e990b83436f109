// SPDX-License-Identifier: Apache-2.0

package ingress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/atomic"
	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/ingress"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
)

// patience is the maximum time that a test waits for an expected event.
const patience = time.Minute

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-timeout.C:
			tb.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func restConfig(c kubetest.Config) *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: c.User, Groups: c.Groups}, QPS: -1,
	}
}

// site is a cluster with a namespace for gateways and its own class.
type site struct {
	*testing.T
	server    *kubetest.Server
	client    *kubernetes.Clientset
	namespace string
	class     string
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := apiserver.Server(t)
	client, err := kubernetes.NewForConfig(restConfig(server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, server: server, client: client, namespace: server.Namespace(t)}
	s.class = s.namespace
	_, err = client.NetworkingV1().IngressClasses().Create(t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.class}, Spec: networkingv1.IngressClassSpec{Controller: ingress.ControllerName},
	}, metav1.CreateOptions{})
	s.must(err)
	t.Cleanup(func() {
		if err := client.NetworkingV1().IngressClasses().Delete(context.Background(), s.class, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// options returns the options of a cache that handles only the site's Ingresses.
func (s *site) options() ingress.CacheOptions {
	return ingress.CacheOptions{
		Options: ingress.Options{Namespace: s.namespace},
		Mesh:    &ingress.Mesh{Mode: meshconfig.MeshConfig_STRICT, Service: "gateway"},
	}
}

// run runs a function until the test ends, or the returned function is called.
func (s *site) run(run func(stop <-chan struct{})) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { run(stop) })
	end = sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	s.Cleanup(end)
	return end
}

func (s *site) ingress(name, host, port string) *networkingv1.Ingress {
	o := simple(name, host, "/", port)
	o.Namespace, o.Spec.IngressClassName = s.namespace, &s.class
	return o
}

func (s *site) create(o *networkingv1.Ingress) {
	s.Helper()
	_, err := s.client.NetworkingV1().Ingresses(s.namespace).Create(s.Context(), o, metav1.CreateOptions{})
	s.must(err)
}

func (s *site) createService(o *corev1.Service) {
	s.Helper()
	o.Namespace = s.namespace
	_, err := s.client.CoreV1().Services(s.namespace).Create(s.Context(), o, metav1.CreateOptions{})
	s.must(err)
}

// publish gives the gateways' Service addresses.
func (s *site) publish(ips ...string) {
	s.Helper()
	services := s.client.CoreV1().Services(s.namespace)
	o, err := services.Get(s.Context(), "gateway", metav1.GetOptions{})
	s.must(err)
	o.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	for _, ip := range ips {
		o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	_, err = services.UpdateStatus(s.Context(), o, metav1.UpdateOptions{})
	s.must(err)
}

// stored returns an Ingress from the API server.
func (s *site) stored(name string) *networkingv1.Ingress {
	s.Helper()
	o, err := s.client.NetworkingV1().Ingresses(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	return o
}

func (s *site) expectStatus(name string, want ...string) {
	s.Helper()
	var got []string
	eventually(s, fmt.Sprintf("the status of %s has %v", name, want), func() bool {
		got = addressesOf(s.stored(name).Status.LoadBalancer.Ingress)
		return slices.Equal(got, want)
	})
}

// counted counts the writes of statuses, and makes the first ones fail with a conflict.
type counted struct {
	http.RoundTripper
	writes    *atomic.Int32
	conflicts *atomic.Int32 // that are still to come
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/status") {
		return c.RoundTripper.RoundTrip(r)
	}
	c.writes.Inc()
	if c.conflicts.Dec() < 0 {
		return c.RoundTripper.RoundTrip(r)
	}
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
	return &http.Response{
		StatusCode: http.StatusConflict, Status: "409 Conflict", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)),
	}, nil
}

// startWriter starts a writer with some conflicts. It returns the number of its writes and a
// function that ends it.
func (s *site) startWriter(c *ingress.Cache, identity string, conflicts int32) (*ingress.StatusWriter, *atomic.Int32, func()) {
	s.Helper()
	config, writes := restConfig(s.server.Config()), atomic.NewInt32(0)
	left := atomic.NewInt32(conflicts)
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return counted{next, writes, left} }
	w, err := ingress.NewStatusWriter(c, config, kube.StatusOptions{
		Lease: "writer", LeaseNamespace: s.namespace, Identity: identity,
	})
	s.must(err)
	return w, writes, s.run(w.Run)
}

// TestCluster: Ingresses of a cluster are configs among others. One of two processes writes their
// statuses, once, and repairs them.
func TestCluster(t *testing.T) {
	s := newSite(t)
	gateway := service(s.namespace, "gateway", map[string]int32{"http": 80})
	gateway.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.createService(gateway)
	s.publish("192.0.2.1")
	s.createService(service(s.namespace, "cart", map[string]int32{"http": 8000, "admin": 8001}))
	s.create(s.ingress("a", "a.example.com", "http"))
	s.create(s.ingress("b", "b.example.com", "80"))
	foreign := s.ingress("foreign", "f.example.com", "80")
	foreign.Spec.IngressClassName = nil
	s.create(foreign)

	c, err := ingress.New(restConfig(s.server.Config()), s.options())
	s.must(err)
	others := memory.NewController(memory.Make(istio.Schemas()))
	configs := aggregate.MakeCache(others, c)
	var mu sync.Mutex
	var events []string
	for _, kind := range []configstore.GroupVersionKind{istio.Gateway, istio.VirtualService} {
		c.RegisterEventHandler(kind, func(_, curr configstore.Config, event configstore.Event) {
			mu.Lock()
			defer mu.Unlock()
			host := ""
			if v, ok := curr.Spec.(*networking.VirtualService); ok {
				host = fmt.Sprintf(" %s %d", v.GetHosts()[0], v.GetHttp()[0].GetRoute()[0].GetDestination().GetPort().GetNumber())
			}
			events = append(events, event.String()+" "+kind.Kind+host)
		})
	}
	take := func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := events
		events = nil
		slices.Sort(out)
		return out
	}
	s.run(configs.Run)
	s.must(configstore.WaitForSync(t.Context(), configs))
	if d := gocmp.Diff([]string{"add Gateway", "add Gateway", "add VirtualService a.example.com 8000", "add VirtualService b.example.com 80"}, take()); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if n := len(configs.List(istio.VirtualService, configstore.NamespaceAll)); n != 2 {
		t.Errorf("%d VirtualServices beside others, want 2", n)
	}
	if _, err := c.Create(configstore.Config{}); !errors.Is(err, configstore.ErrReadOnly) {
		t.Errorf("Create = %v", err)
	}

	first, writes, endFirst := s.startWriter(c, "first", 1)
	s.expectStatus("a", "192.0.2.1")
	s.expectStatus("b", "192.0.2.1")
	if n := writes.Load(); n != 3 {
		t.Errorf("%d writes of two statuses, one of which was too late", n)
	}
	other, err := ingress.New(restConfig(s.server.Config()), s.options())
	s.must(err)
	s.run(other.Run)
	second, secondWrites, _ := s.startWriter(other, "second", 0)
	s.moveService()
	eventually(t, "the port is another one", func() bool { return slices.Equal(take(), []string{"update VirtualService a.example.com 8080"}) })
	s.publish("192.0.2.2")
	s.expectStatus("a", "192.0.2.2")
	s.expectStatus("b", "192.0.2.2")
	s.vandalise("a")
	s.expectStatus("a", "192.0.2.2")
	if got := s.stored("foreign").Status.LoadBalancer.Ingress; len(got) > 0 {
		t.Errorf("an Ingress of nobody has the status %v", got)
	}
	if n, m := writes.Load(), secondWrites.Load(); n != 6 || m > 0 || !first.Leading() || second.Leading() {
		t.Errorf("%d writes of the leader, want 6, and %d of the other one", n, m)
	}
	endFirst()
	eventually(t, "the second leads", second.Leading)
	s.publish()
	s.expectStatus("a")
	s.expectStatus("b")
	if n, m := writes.Load(), secondWrites.Load(); n != 6 || m != 2 {
		t.Errorf("%d writes of the first, %d of the second; want 6 and 2", n, m)
	}
	if more := take(); len(more) > 0 {
		t.Errorf("events of statuses: %v", more)
	}
	s.must(s.client.NetworkingV1().Ingresses(s.namespace).Delete(t.Context(), "b", metav1.DeleteOptions{}))
	eventually(t, "b is gone", func() bool { return len(configs.List(istio.Gateway, configstore.NamespaceAll)) == 1 })
}

// moveService gives a named port of the Service another number.
func (s *site) moveService() {
	s.Helper()
	services := s.client.CoreV1().Services(s.namespace)
	o, err := services.Get(s.Context(), "cart", metav1.GetOptions{})
	s.must(err)
	for i := range o.Spec.Ports {
		if o.Spec.Ports[i].Name == "http" {
			o.Spec.Ports[i].Port = 8080
		}
	}
	_, err = services.Update(s.Context(), o, metav1.UpdateOptions{})
	s.must(err)
}

// vandalise writes a wrong status.
func (s *site) vandalise(name string) {
	s.Helper()
	for {
		o := s.stored(name)
		o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.9"}}
		_, err := s.client.NetworkingV1().Ingresses(s.namespace).UpdateStatus(s.Context(), o, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			s.must(err)
			return
		}
	}
}

// TestRelist: objects that were deleted or created while the API server was unavailable are removed
// or added afterwards; until then the state stays.
func TestRelist(t *testing.T) {
	s := newSite(t)
	s.create(s.ingress("a", "a.relist.test", "80"))
	s.create(s.ingress("b", "b.relist.test", "80"))
	front := s.server.Front(t)
	o := s.options()
	o.MaxBackoff = 300 * time.Millisecond
	c, err := ingress.New(restConfig(front.Config()), o)
	s.must(err)
	s.run(c.Run)
	s.must(configstore.WaitForSync(t.Context(), c))
	batches := make(chan []configstore.Change, 100)
	_, cancel := c.Subscribe([]configstore.GroupVersionKind{istio.Gateway, istio.VirtualService}, func(changes []configstore.Change) {
		batches <- slices.Clone(changes)
	})
	defer cancel()
	front.Refuse(true)
	eventually(t, "all kinds cannot be read", func() bool { return len(c.Errors()) == 5 })
	s.must(s.client.NetworkingV1().Ingresses(s.namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.create(s.ingress("c", "c.relist.test", "80"))
	if n := len(c.List(istio.VirtualService, s.namespace)); n != 2 {
		t.Errorf("%d VirtualServices while the API server is away, want 2", n)
	}
	front.Refuse(false)
	var got []string
	eventually(t, "both have come", func() bool {
		select {
		case batch := <-batches:
			for _, change := range batch {
				got = append(got, change.Event.String()+" "+change.Curr.GroupVersionKind.Kind)
			}
		default:
		}
		return len(got) == 4
	})
	slices.Sort(got)
	if d := gocmp.Diff([]string{"add Gateway", "add VirtualService", "delete Gateway", "delete VirtualService"}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	eventually(t, "there is no error any more", func() bool { return len(c.Errors()) == 0 })
}

// TestForbidden: forbidden kinds keep the cache empty and not synced, unless they are optional;
// then the other kinds are published.
func TestForbidden(t *testing.T) {
	s := newSite(t)
	s.create(s.ingress("a", "a.example.com", "80"))
	user := "user-of-" + s.namespace
	config := restConfig(s.server.ConfigFor(user))
	o := s.options()
	o.Optional, o.MaxBackoff = []string{"pods", "nodes", "services"}, 300*time.Millisecond
	c, err := ingress.New(config, o)
	s.must(err)
	s.run(c.Run)
	kinds := func() string {
		var out []string
		for _, e := range c.Errors() {
			if apierrors.IsForbidden(e) {
				out = append(out, e.Kind)
			}
		}
		return strings.Join(out, " ")
	}
	eventually(t, "all kinds are forbidden", func() bool { return kinds() == "ingresses ingressclasses services pods nodes" })
	if c.HasSynced() {
		t.Error("the cache has synced, and may read nothing")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		Verbs: []string{"list", "watch"}, APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"},
	}}}
	_, err = s.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	s.must(err)
	t.Cleanup(func() {
		if err := s.client.RbacV1().ClusterRoles().Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: user}},
	}, metav1.CreateOptions{})
	s.must(err)
	t.Cleanup(func() {
		if err := s.client.RbacV1().ClusterRoleBindings().Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s.must(configstore.WaitForSync(t.Context(), c))
	if n := len(c.List(istio.VirtualService, s.namespace)); n != 1 {
		t.Errorf("%d VirtualServices, want 1", n)
	}
	eventually(t, "three kinds are forbidden", func() bool { return kinds() == "services pods nodes" })
}
