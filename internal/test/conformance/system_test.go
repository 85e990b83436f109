// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// system is the library, put together as a scenario asks for.
type system struct {
	scenario *scenario
	started  time.Time
	index    *xdsupdate.EndpointIndex
	recorder *recorder
	updater  xdsupdate.XDSUpdater

	// stores are by registry, "" for the main one.
	stores  map[string]*storememory.Controller
	main    *serviceentry.Controller
	statics map[string]staticRegistry
	remotes map[string]*serviceentry.Controller

	aggregate *aggregate.Controller

	created creationClock
	// symbols are the store's versions by their names in the golden file.
	symbols symbols

	mu           sync.Mutex
	doc          int
	workloads    []workloadHandlerCall
	services     []serviceHandlerCall
	events       []eventHandlerCall
	gatewayCalls int
}

// newSystem builds the parts. deltas says what kind of updater they get.
func newSystem(s *scenario, deltas bool) (*system, error) {
	sys := &system{
		scenario: s, started: time.Now(), index: xdsupdate.NewEndpointIndex(),
		stores: map[string]*storememory.Controller{}, statics: map[string]staticRegistry{},
		remotes: map[string]*serviceentry.Controller{}, symbols: symbols{},
	}
	sys.recorder = &recorder{index: sys.index}
	sys.updater = sys.recorder
	if deltas {
		sys.updater = deltaRecorder{sys.recorder}
	}
	sys.stores[""] = sys.newStore()
	for _, kind := range s.Options.EventHandlers {
		sys.stores[""].RegisterEventHandler(kindOf(kind), sys.onEvent)
	}
	return sys, nil
}

func (sys *system) newStore() *storememory.Controller {
	store := storememory.Make(istio.Schemas(), storememory.Options{
		SkipValidation: sys.scenario.Options.SkipValidation, DetectMutations: true,
	})
	return storememory.NewController(store)
}

// start creates the registries, after the initial objects are in the store, and
// lets everything finish.
func (sys *system) start() error {
	if sys.scenario.Options.StoreOnly {
		return nil
	}
	opts, err := sys.serviceEntryOptions()
	if err != nil {
		return err
	}
	sys.main = serviceentry.New(sys.stores[""], sys.updater, opts)
	sys.main.AppendWorkloadHandler(sys.onWorkload(""))
	if sys.scenario.Registries != nil {
		sys.startAggregate(opts)
	}
	sys.catchUp()
	return nil
}

func (sys *system) serviceEntryOptions() (serviceentry.Options, error) {
	o := sys.scenario.Options
	mesh, err := meshOf(o.MeshConfig)
	if err != nil {
		return serviceentry.Options{}, fmt.Errorf("mesh config: %w", err)
	}
	opts := serviceentry.Options{
		ClusterID: registry.ClusterID(o.ClusterID), Mesh: mesh, NetworkOf: networkOf(o.NetworkRules),
		IgnoreHealth:                    !enabled(o.Features.WorkloadEntryHealthChecks, true),
		CanonicalServiceForMeshExternal: enabled(o.Features.CanonicalServiceForMeshExternal, false),
		WorkloadEntriesOnly:             o.WorkloadEntryOnly,
	}
	if !enabled(o.Features.IPAutoallocate, true) {
		opts.AddressAllocation = serviceentry.AllocateByHash
	}
	for _, n := range o.Namespaces {
		opts.Namespaces = append(opts.Namespaces, n.registryNamespace())
	}
	return opts, nil
}

// newRegistry creates an additional registry. opts are those of the main one: its mesh settings
// apply to all.
func (sys *system) newRegistry(spec registrySpec, opts serviceentry.Options) registry.Instance {
	if spec.Type == typeWorkloadEntry {
		sys.stores[spec.ID] = sys.newStore()
		opts.ClusterID, opts.WorkloadEntriesOnly = registry.ClusterID(spec.Cluster), true
		remote := serviceentry.New(sys.stores[spec.ID], sys.updater, opts)
		remote.AppendWorkloadHandler(sys.onWorkload(spec.ID))
		remote.AppendWorkloadHandler(sys.main.WorkloadInstanceHandler)
		sys.remotes[spec.ID] = remote
		return remote
	}
	static := staticRegistry{memory.New(memory.Options{
		Provider: registry.ProviderID(spec.Provider), Cluster: registry.ClusterID(spec.Cluster),
	})}
	sys.statics[spec.ID] = static
	fillStatic(static.Registry, spec)
	return static
}

// fillStatic gives a static registry its content. Rejected content shows in the comparison.
func fillStatic(r *memory.Registry, spec registrySpec) {
	namespaces := map[string]string{}
	for _, s := range spec.Services {
		namespaces[s.Hostname] = s.Namespace
		_ = r.SetService(s.registryService(spec.Provider))
	}
	for _, e := range spec.Endpoints {
		_ = r.AddEndpoint(registry.Hostname(e.Hostname), namespaces[e.Hostname], &registry.Endpoint{
			Addresses: []string{e.Address}, EndpointPort: e.TargetPort, ServicePort: e.Port, ServicePortName: e.PortName,
		})
	}
	for i, l := range spec.WorkloadLabels {
		_ = r.SetWorkload(&registry.WorkloadInstance{
			Cluster: registry.ClusterID(spec.Cluster), Name: fmt.Sprintf("workload-%d", i),
			Endpoint: &registry.Endpoint{Addresses: []string{l.IP}, Shared: &registry.EndpointAttributes{Labels: l.Labels}},
		})
	}
	var gateways []registry.NetworkGateway
	for _, g := range spec.Gateways {
		gateways = append(gateways, registry.NetworkGateway{
			Network: g.Network, Cluster: registry.ClusterID(g.Cluster), Addr: g.Addr + g.Address, Port: g.Port,
			HBONEPort: g.HBONEPort, ServiceAccount: g.ServiceAccount,
		})
	}
	r.SetNetworkGateways(gateways)
}

// catchUp waits for the effects of a change. Handlers of one store may affect another store's
// registry, hence the second round.
func (sys *system) catchUp() {
	for range 2 {
		for _, id := range sortedKeys(sys.stores) {
			sys.stores[id].Drain()
		}
	}
}

func (sys *system) onEvent(old, curr configstore.Config, event configstore.Event) {
	c := eventHandlerCall{Kind: curr.GroupVersionKind.Kind, Event: event.String()}
	if old.Name != "" {
		c.Old = sys.viewConfig(old, nil)
	}
	if curr.Name != "" {
		c.New = sys.viewConfig(curr, nil)
	}
	sys.mu.Lock()
	defer sys.mu.Unlock()
	sys.events = append(sys.events, c)
}

func (sys *system) onWorkload(handler string) func(*registry.WorkloadInstance, registry.Event) {
	return func(w *registry.WorkloadInstance, event registry.Event) {
		sys.mu.Lock()
		defer sys.mu.Unlock()
		sys.workloads = append(sys.workloads, viewWorkloadCall(handler, sys.doc, w, event))
	}
}

// onService notes the events of static registries; the recorded
// ServiceEntry registry notified no handler.
func (sys *system) onService(handler string) registry.ServiceHandler {
	return func(prev, curr *registry.Service, event registry.Event) {
		if curr.Attributes.Provider == registry.External {
			return
		}
		c := serviceHandlerCall{Doc: sys.doc, Handler: handler, Event: event.String(), Hostname: string(curr.Hostname)}
		if prev != nil {
			c.Previous = string(prev.Hostname)
		}
		sys.mu.Lock()
		defer sys.mu.Unlock()
		sys.services = append(sys.services, c)
	}
}

func (sys *system) onGateways() {
	sys.mu.Lock()
	defer sys.mu.Unlock()
	sys.gatewayCalls++
}

// viewConfig returns a stored object as the files write it.
func (sys *system) viewConfig(c configstore.Config, shown *object) *object {
	out := viewOf(c, shown)
	out.ResourceVersion, out.CreationTimestamp = c.ResourceVersion, viewTime(c.CreationTimestamp, sys.started)
	return out
}

// observe reads everything that is compared.
func (sys *system) observe(results []result) observation {
	o := observation{Results: results, Calls: sys.recorder.take(), EndpointIndex: sys.viewIndex()}
	sys.mu.Lock()
	o.WorkloadHandlerCalls, o.ServiceHandlerCalls = sys.workloads, sys.services
	o.EventHandlerCalls, o.GatewayHandlerCalls = sys.events, sys.gatewayCalls
	sys.workloads, sys.services, sys.events, sys.gatewayCalls = nil, nil, nil, 0
	sys.mu.Unlock()
	if sys.main == nil {
		return o
	}
	sys.observeDiscovery(&o)
	return o
}

func (sys *system) viewIndex() []indexEntry {
	var out []indexEntry
	for view := range sys.index.All() {
		e := indexEntry{Hostname: string(view.Hostname()), Namespace: view.Namespace(), ServiceAccounts: view.ServiceAccounts()}
		for key, endpoints := range view.Shards() {
			e.Shards = append(e.Shards, shard{Shard: key.String(), Endpoints: viewEndpoints(endpoints)})
		}
		out = append(out, e)
	}
	return out
}

func (sys *system) observeDiscovery(o *observation) {
	var discovery registry.ServiceDiscovery = sys.main
	prefix := func(*registry.Service) string { return "" }
	if sys.aggregate != nil {
		discovery = sys.aggregate
		prefix = func(s *registry.Service) string { return viewProvider(s.Attributes.Provider) + ":" }
		for _, r := range sys.aggregate.Registries() {
			o.RegistryOrder = append(o.RegistryOrder, viewProvider(r.Provider())+"/"+string(r.Cluster()))
		}
		o.NetworkGateways = viewGateways(discovery.NetworkGateways())
	}
	o.GetService = map[string]answers{}
	services := discovery.Services()
	for _, s := range services {
		v := viewService(s, sys.started)
		o.Services = append(o.Services, v)
		if found := discovery.GetService(s.Hostname); found != nil {
			o.GetService[v.Hostname] = answers{prefix(found) + viewService(found, sys.started).resource()}
		}
	}
	if !slices.IsSortedFunc(services, registry.CompareServices) {
		o.Services = append(o.Services, service{Name: "the services are not sorted"})
	}
	for _, p := range sys.scenario.Proxies {
		o.Proxies = append(o.Proxies, sys.viewProxy(discovery, p, services))
	}
}

func (sys *system) viewProxy(discovery registry.ServiceDiscovery, p proxy, services []*registry.Service) proxyState {
	rp := p.registryProxy(sys.scenario.Options)
	out := proxyState{
		IPs: p.addresses(), Namespace: p.Namespace, Cluster: p.Cluster, DNSCapture: p.DNSCapture, DNSAutoAllocate: p.DNSAutoAllocate,
		Targets: viewTargets(discovery.GetProxyServiceInstances(rp)),
	}
	if labels := discovery.GetProxyWorkloadLabels(rp); labels != nil {
		out.WorkloadLabels = (*map[string]string)(&labels)
	}
	if sys.scenario.Options.RecordServiceAddresses {
		out.ServiceAddresses = map[string][]string{}
		for _, s := range services {
			out.ServiceAddresses[viewService(s, sys.started).resource()] = s.AddressesFor(rp)
		}
	}
	return out
}
