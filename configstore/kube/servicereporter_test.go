// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// requests counts the requests of a client.
type requests struct {
	mu     sync.Mutex
	counts map[string]int
}

// count returns a config whose client counts its requests.
func (r *requests) count(config *rest.Config) *rest.Config {
	r.counts = map[string]int{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.counts[request.Method+" "+request.URL.Path]++
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

// of returns the number of requests with a method and an end of the path.
func (r *requests) of(method, suffix string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for request, count := range r.counts {
		if strings.HasPrefix(request, method+" ") && strings.HasSuffix(request, suffix) {
			n += count
		}
	}
	return n
}

// reporting is a process that converts ServiceEntries to services, with a second registry of
// another provider, and reports the outcome.
type reporting struct {
	plane
	others   *memory.Registry
	requests requests
}

// startReporting starts a process; end stops it.
func startReporting(t *testing.T, server *kubetest.Server, kind configstore.Schema, opts kube.StatusOptions) (r *reporting, end func()) {
	t.Helper()
	r = &reporting{others: memory.New(memory.Options{Provider: registry.Kubernetes, Cluster: "east"})}
	config := r.requests.count(restConfig(server.Config()))
	r.cache = newCache(t, config, istio.Schemas(), kube.Options{})
	registries := aggregate.NewController()
	registries.AddRegistry(func(xdsupdate.XDSUpdater) registry.Instance { return r.others })
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(r.cache, updater) })
	var err error
	if r.writer, err = kube.NewStatusWriter(r.cache, config, opts); err != nil {
		t.Fatal(err)
	}
	var ends []func()
	for _, part := range []func(<-chan struct{}){
		r.cache.Run, registries.Run, r.writer.Run, kube.NewServiceReporter(r.writer, kind.GroupVersionKind, registries).Run,
	} {
		ends = append(ends, runAny(t, part))
	}
	return r, func() {
		for i := range ends {
			ends[len(ends)-1-i]()
		}
	}
}

// entryOf returns a ServiceEntry with hosts in a domain of the namespace's own, because other tests
// have entries, too.
func entryOf(namespace, name string, hosts ...string) configstore.Config {
	e := entry(namespace, name)
	spec := e.Spec.(*networking.ServiceEntry)
	spec.Hosts = nil
	for _, host := range hosts {
		spec.Hosts = append(spec.Hosts, host+"."+namespace)
	}
	return e
}

// TestServiceReporter: the status of a ServiceEntry contains its services, and the other
// definitions of its hosts as long as they exist.
func TestServiceReporter(t *testing.T) {
	server := apiserver.Server(t)
	server.ApplyCRDs(t, kubetest.IstioCRDs(t))
	ns, kind := server.Namespace(t), serviceEntries(t)
	l := newLive(t, restConfig(server.Config()), configstore.NewSchemasBuilder().MustAdd(kind).Build())
	r, _ := startReporting(t, server, kind, kube.StatusOptions{Rate: 1000})
	first := entryOf(ns, "first", "a", "b")
	create(t, r.cache, first)
	expectStatus(t, l, ns, "first", "1", "Accepted=True Valid ",
		"Conflicted=False NoConflicts ", "ServicesMade=True Made 2 services: a."+ns+", b."+ns)

	service := &registry.Service{Hostname: registry.Hostname("b." + ns), Attributes: registry.ServiceAttributes{Provider: registry.Kubernetes, Namespace: ns, Name: "b", ObjectName: "b"}}
	if err := r.others.SetService(service); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, l, ns, "first", "1", "Accepted=True Valid ",
		"Conflicted=True DefinedMoreThanOnce b."+ns+": defined by Kubernetes "+ns+"/b and External "+ns+"/first",
		"ServicesMade=True Made 2 services: a."+ns+", b."+ns)
	if err := r.others.RemoveService(service.Hostname, ns); err != nil {
		t.Fatal(err)
	}
	expectStatus(t, l, ns, "first", "1", "Accepted=True Valid ",
		"Conflicted=False NoConflicts ", "ServicesMade=True Made 2 services: a."+ns+", b."+ns)

	first = entryOf(ns, "first", "c")
	update(t, r.cache, first)
	expectStatus(t, l, ns, "first", "2", "Accepted=True Valid ",
		"Conflicted=False NoConflicts ", "ServicesMade=True Made 1 service: c."+ns)
}

// TestStatusWritesEnd: a written status that returns as a change is neither written nor read again.
func TestStatusWritesEnd(t *testing.T) {
	server := apiserver.Server(t)
	server.ApplyCRDs(t, kubetest.IstioCRDs(t))
	ns, kind := server.Namespace(t), serviceEntries(t)
	l := newLive(t, restConfig(server.Config()), configstore.NewSchemasBuilder().MustAdd(kind).Build())
	r, _ := startReporting(t, server, kind, kube.StatusOptions{Rate: 1000})
	made := func(name string) {
		t.Helper()
		create(t, r.cache, entryOf(ns, name, name))
		expectStatus(t, l, ns, name, "1", "Accepted=True Valid ",
			"Conflicted=False NoConflicts ", "ServicesMade=True Made 1 service: "+name+"."+ns)
	}
	made("a")
	// The writer processes events in order: once it has processed b, it has processed a.
	for _, name := range []string{"b", "c", "d"} {
		made(name)
	}
	for _, name := range []string{"a", "b", "c"} {
		path := ns + "/serviceentries/" + name
		writes, reads := r.requests.of(http.MethodPut, path+"/status"), r.requests.of(http.MethodGet, path)
		if writes < 1 || writes > 2 || reads != writes { // one for each of the two that report
			t.Errorf("the status of %s was written %d times and read %d times", name, writes, reads)
		}
	}
}

// TestOnlyLeaderReports: of several processes one writes.
func TestOnlyLeaderReports(t *testing.T) {
	server := apiserver.Server(t)
	server.ApplyCRDs(t, kubetest.IstioCRDs(t))
	ns, kind := server.Namespace(t), serviceEntries(t)
	l := newLive(t, restConfig(server.Config()), configstore.NewSchemasBuilder().MustAdd(kind).Build())
	start := func(identity string) (*reporting, func()) {
		return startReporting(t, server, kind, kube.StatusOptions{Rate: 1000, Lease: "reports", LeaseNamespace: ns, Identity: identity})
	}
	leader, end := start("leader")
	eventually(t, "one leads", leader.writer.Leading)
	other, _ := start("other")
	expect := func(name string) {
		t.Helper()
		create(t, other.cache, entryOf(ns, name, name))
		expectStatus(t, l, ns, name, "1", "Accepted=True Valid ",
			"Conflicted=False NoConflicts ", "ServicesMade=True Made 1 service: "+name+"."+ns)
	}
	expect("a")
	if n := other.requests.of(http.MethodPut, "/status"); n > 0 {
		t.Errorf("the process that does not lead has written %d statuses", n)
	}
	end()
	expect("b")
	if n := other.requests.of(http.MethodPut, "/status"); n == 0 {
		t.Error("nobody took over")
	}
	if n := other.requests.of(http.MethodPut, ns+"/serviceentries/a/status"); n > 0 {
		t.Errorf("a new leader has written again what was written: %d times", n)
	}
}
