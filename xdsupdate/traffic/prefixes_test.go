// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestPushesHavePrefixes: sixteen registries, of which three are made of stores with policies,
// commit without a pause, and a handler of the program blocks in the midst of a batch.
// Every state that a push has is, of each source, that after one of its commits, all of it, and none
// goes back; on any number of processors.
func TestPushesHavePrefixes(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			newPrefixes(t).run()
		})
	}
}

// prefixes is a control plane whose sources have versions.
type prefixes struct {
	t        *testing.T
	services *aggregate.Controller
	pusher   *xdsupdate.Pusher
	root     *xdsupdate.Root
	sources  []*versionedSource
	stores   []*storememory.Controller
	pushes   atomic.Int64
	blocked  chan struct{} // what the handler of the first store waits for
	blocks   chan struct{} // closed when it does
}

// versionedSource shows each of its versions in two services, in their endpoints and, with a store, in
// a policy.
type versionedSource struct {
	name    string
	version int
	commit  func(version int)
	configs *xdsupdate.Configs // nil without a store
	pushed  int                // the version of the last push
}

func newPrefixes(t *testing.T) *prefixes {
	t.Helper()
	p := &prefixes{t: t, services: aggregate.NewController(), blocked: make(chan struct{}), blocks: make(chan struct{})}
	p.pusher = xdsupdate.NewPusher(p.check, xdsupdate.PusherOptions{Debounce: xdsupdate.Debounce{After: -1}, Capture: func(_ *xdsupdate.PushRequest, root *xdsupdate.Root) bool {
		p.root = root
		return true
	}})
	p.services.AttachUpdater(p.pusher)
	for i := range 3 {
		p.addStore(i)
	}
	for i := range 13 {
		p.addRegistry(i)
	}
	return p
}

func (p *prefixes) addStore(i int) {
	store := storememory.NewController(storememory.Make(istio.Schemas()))
	s := &versionedSource{name: fmt.Sprint("store", i)}
	s.configs = xdsupdate.FollowConfigs(p.pusher, store, []configstore.GroupVersionKind{istio.VirtualService},
		func(a, b *configstore.Config) bool { return a == b })
	if i == 0 {
		block := sync.OnceFunc(func() {
			close(p.blocks)
			<-p.blocked
		})
		store.Subscribe([]configstore.GroupVersionKind{istio.ServiceEntry}, func(changes []configstore.Change) {
			// A batch may have several commits.
			if version, _ := strconv.Atoi(changes[len(changes)-1].Curr.Labels["version"]); version >= 50 {
				block()
			}
		})
	}
	p.services.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(store, updater, serviceentry.Options{ClusterID: registry.ClusterID(s.name)})
	})
	s.commit = func(version int) {
		var batch []configstore.Mutation
		for _, host := range []string{"a", "b"} {
			batch = append(batch, upsert(parseConfig(p.t, fmt.Sprintf(`{kind: ServiceEntry, metadata: {name: %[1]s, labels: {version: "%[3]d"}},
				spec: {hosts: [%[1]s.%[2]s], addresses: [%[4]s], resolution: STATIC,
				ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1, ports: {http: %[3]d}}]}}`,
				host, s.name, version, versionAddress(version)))))
		}
		batch = append(batch, upsert(parseConfig(p.t, fmt.Sprintf(`{kind: VirtualService, metadata: {name: v, labels: {version: "%d"}},
			spec: {hosts: [a.%[2]s], http: [{route: [{destination: {host: b.%[2]s}}]}]}}`, version, s.name))))
		if _, err := store.Apply(batch...); err != nil {
			p.t.Error(err)
		}
	}
	p.stores, p.sources = append(p.stores, store), append(p.sources, s)
}

func upsert(c configstore.Config) configstore.Mutation {
	return configstore.Mutation{Op: configstore.OpUpsert, Config: c}
}

func versionAddress(version int) string { return fmt.Sprintf("240.0.%d.%d", version/250, version%250) }

func (p *prefixes) addRegistry(i int) {
	s := &versionedSource{name: fmt.Sprint("memory", i)}
	r, _ := p.services.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return registrymemory.New(registrymemory.Options{Cluster: registry.ClusterID(s.name), Updater: updater})
	}).(*registrymemory.Registry)
	s.commit = func(version int) {
		var all []registrymemory.Definition
		for _, host := range []string{"a", "b"} {
			all = append(all, registrymemory.Definition{
				Service: &registry.Service{
					Hostname: registry.Hostname(host + "." + s.name), DefaultAddress: versionAddress(version),
					Ports:      []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
					Attributes: registry.ServiceAttributes{Namespace: "default"},
				},
				Endpoints: []*registry.Endpoint{{Addresses: []string{"10.0.0.1"}, EndpointPort: uint32(version), ServicePort: 80, ServicePortName: "http"}},
			})
		}
		if err := r.Replace(all); err != nil {
			p.t.Error(err)
		}
	}
	p.sources = append(p.sources, s)
}

// check is the push.
func (p *prefixes) check(*xdsupdate.PushRequest) {
	p.pushes.Inc()
	services, exact := p.services.ServicesAt(p.services, p.root)
	if !exact {
		p.t.Error("services were read past the root")
	}
	for _, s := range p.sources {
		version := 0
		for i, host := range []registry.Hostname{"a", "b"} {
			name := host + "." + registry.Hostname(s.name)
			svc, port := services.Get(name), 0
			namespace, want := "", ""
			if svc != nil {
				namespace, want = svc.Attributes.Namespace, svc.DefaultAddress
			}
			for e := range p.root.Endpoints().Service(name, namespace).All() {
				port = int(e.EndpointPort)
			}
			if i == 0 {
				version = port
			}
			if port != version || version > 0 && want != versionAddress(version) || version == 0 && svc != nil {
				p.t.Errorf("%s: version %d of the endpoints with the service %v, and %d of the first", name, port, want, version)
			}
		}
		if s.configs != nil {
			policy := 0
			for _, c := range p.root.ConfigsSince(nil, s.configs) {
				policy, _ = strconv.Atoi(c.Labels["version"])
			}
			if policy != version {
				p.t.Errorf("%s: version %d of the policy, and %d of the services", s.name, policy, version)
			}
		}
		if version < s.pushed {
			p.t.Errorf("%s went back from %d to %d", s.name, s.pushed, version)
		}
		s.pushed = version
	}
}

const prefixVersions = 150

func (p *prefixes) run() {
	stop := make(chan struct{})
	var runs, sources sync.WaitGroup
	runs.Go(func() { p.pusher.Run(stop) })
	for _, store := range p.stores {
		runs.Go(func() { store.Run(stop) })
	}
	for _, s := range p.sources {
		sources.Go(func() {
			for s.version = 1; s.version <= prefixVersions; s.version++ {
				s.commit(s.version)
				runtime.Gosched()
			}
		})
	}
	<-p.blocks
	if err := p.pusher.Flush(p.t.Context()); err != nil { // a push while the handler blocks
		p.t.Error(err)
	}
	close(p.blocked)
	sources.Wait()
	ctx := p.t.Context()
	for _, store := range p.stores {
		if err := store.Flush(ctx); err != nil {
			p.t.Error(err)
		}
	}
	if err := p.pusher.Flush(ctx); err != nil {
		p.t.Error(err)
	}
	close(stop)
	runs.Wait()
	for _, s := range p.sources {
		if s.pushed != prefixVersions {
			p.t.Errorf("the last push has version %d of %s", s.pushed, s.name)
		}
	}
}
