// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admin "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// realProxy is an Envoy in the place of a proxy of a scenario.
type realProxy struct {
	*envoyproxy.Proxy
	sys     *envoySystem
	adapter *envoyproxy.Adapter
	spec    proxySpec
	node    string
	// file has the listeners of a sidecar, which its program makes; version counts them.
	file    string
	version int
	// routes are the route configurations that they refer to.
	routes []string
}

// startEnvoys starts one for each sidecar and gateway.
func (sys *envoySystem) startEnvoys(t *testing.T, adapter *envoyproxy.Adapter, o envoyproxy.Options) []*realProxy {
	t.Helper()
	var out []*realProxy
	for _, spec := range sys.scenario.Proxies {
		if spec.Kind == kindGRPC {
			continue
		}
		node := spec.node()
		p := &realProxy{sys: sys, adapter: adapter, spec: spec, node: node.GetId()}
		o.Server, o.Runtime = sys.address, envoyproxy.RegexProgramSize(32768)
		o.Node = envoyproxy.Node{
			Kind: spec.Kind, IP: spec.IP, Name: spec.Name, Namespace: spec.Namespace, Locality: node.GetLocality(), Metadata: node.GetMetadata().AsMap(),
		}
		o.ListenersFile = ""
		if spec.Kind == kindSidecar {
			p.file = filepath.Join(t.TempDir(), "listeners.json")
			o.ListenersFile = p.file
			envoyproxy.WriteListeners(t, p.file, "0")
		}
		p.Proxy = envoyproxy.Start(t, o)
		out = append(out, p)
	}
	return out
}

// follow gives a sidecar the listeners of a step.
func (p *realProxy) follow(t *testing.T, recorded recordedStep) {
	t.Helper()
	if p.file == "" {
		return
	}
	p.routes = nil
	for _, r := range recorded.Proxies[p.spec.Name][routes] {
		for _, config := range r {
			if n := name(routes, config); !slices.Contains(p.routes, n) {
				p.routes = append(p.routes, n)
			}
		}
	}
	var listeners []*listenerv3.Listener
	for i, route := range p.routes {
		listeners = append(listeners, &listenerv3.Listener{
			Name: route, Address: p.ownAddress(i),
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
				xdsbuild.GatewayConnectionManager(route, registry.ProtocolHTTP, nil, xdsbuild.HTTPOptions{}),
			}}},
		})
	}
	p.version++
	envoyproxy.WriteListeners(t, p.file, strconv.Itoa(p.version), listeners...)
}

// ownAddress is one for each listener of a sidecar.
func (p *realProxy) ownAddress(i int) *core.Address {
	host, port, _ := strings.Cut(p.adapter.Address(p.node, fmt.Sprintf("198.18.0.%d", i+1), 8080), ":")
	number, _ := strconv.Atoi(port)
	return envoyproxy.Address(host, uint32(number))
}

// check fails the test unless everything that the Envoy was sent becomes active.
func (p *realProxy) check(t *testing.T, step int) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	deadline := time.Now().Add(activeTimeout)
	for {
		missing := p.inactive(t)
		if missing == "" {
			if outmoded := p.Outmoded(); len(outmoded) > 0 {
				t.Errorf("step %d: %s was sent deprecated or unknown fields: %v", step, p.spec.Name, outmoded)
			}
			return
		}
		if refused := p.refusedForGood(); len(refused) > 0 {
			t.Fatalf("step %d: %s refused %v", step, p.spec.Name, refused)
		}
		if time.Now().After(deadline) {
			t.Fatalf("step %d: %s: %s", step, p.spec.Name, missing)
		}
		<-poll.C
	}
}

// refusedForGood is Refused without secrets: one that is asked for while it is not known
// yet is answered with one that the Envoy cannot read.
func (p *realProxy) refusedForGood() map[string]int {
	out := p.Refused()
	maps.DeleteFunc(out, func(counter string, _ int) bool { return strings.HasPrefix(counter, "sds.") })
	return out
}

// activeTimeout is shorter than the time that Envoys wait for missing resources.
const activeTimeout = 10 * time.Second

// inactive describes resources that were sent to the Envoy and are not in use, or returns "".
func (p *realProxy) inactive(t *testing.T) string {
	t.Helper()
	if !p.Ready() {
		return fmt.Sprintf("not ready, waiting for %v", p.Unready())
	}
	for _, kind := range []string{"dynamic_warming_clusters", "dynamic_warming_secrets"} {
		if warming := p.Resources(kind); len(warming) > 0 {
			return fmt.Sprintf("%s: %v", kind, warming)
		}
	}
	active := make(map[string]*anypb.Any)
	for _, m := range p.Resources("dynamic_active_clusters") {
		c := m.(*admin.ClustersConfigDump_DynamicCluster).GetCluster()
		active[nameIn(t, c)] = c
	}
	if diff := difference(p.sys.sent.of(p.node, envoy.ClusterType), active); diff != "" {
		return "clusters: " + diff
	}
	if p.file == "" {
		if out := p.inactiveListeners(t); out != "" {
			return out
		}
	} else if missing := p.ownListenersMissing(); len(missing) > 0 {
		return fmt.Sprintf("listeners of the host: %v", missing)
	}
	return p.inactiveRoutes(t)
}

func (p *realProxy) inactiveListeners(t *testing.T) string {
	t.Helper()
	active := make(map[string]*anypb.Any)
	for _, m := range p.Resources("dynamic_listeners") {
		l := m.(*admin.ListenersConfigDump_DynamicListener)
		if l.GetErrorState() != nil || l.GetWarmingState() != nil {
			return fmt.Sprintf("listener %s: %v", l.GetName(), l)
		}
		if l.GetActiveState() != nil {
			active[l.GetName()] = l.GetActiveState().GetListener()
		}
	}
	if diff := difference(p.sys.sent.of(p.node, envoy.ListenerType), active); diff != "" {
		return "listeners: " + diff
	}
	return ""
}

// ownListenersMissing returns the listeners of the host that do not listen.
func (p *realProxy) ownListenersMissing() []string {
	have := p.Listeners()
	return slices.DeleteFunc(slices.Clone(p.routes), func(n string) bool { return have[n] != "" })
}

// inactiveRoutes: the Envoy has all route configurations that its listeners reference. It may keep
// others, because a removed listener drains for minutes.
func (p *realProxy) inactiveRoutes(t *testing.T) string {
	t.Helper()
	referred := p.routes
	if p.file == "" {
		referred = routesReferred(t, p.sys.sent.of(p.node, envoy.ListenerType))
	}
	unneeded := func(n string, _ *anypb.Any) bool { return !slices.Contains(referred, n) }
	active := make(map[string]*anypb.Any)
	for _, m := range p.Resources("dynamic_route_configs") {
		c := m.(*admin.RoutesConfigDump_DynamicRouteConfig).GetRouteConfig()
		active[nameIn(t, c)] = c
	}
	for _, n := range referred {
		if active[n] == nil {
			return fmt.Sprintf("no route configuration %q", n)
		}
	}
	want := p.sys.sent.of(p.node, envoy.RouteType)
	maps.DeleteFunc(want, unneeded)
	maps.DeleteFunc(active, unneeded)
	if diff := difference(want, active); diff != "" {
		return "routes: " + diff
	}
	return ""
}

// routesReferred returns the route configurations that listeners refer to.
func routesReferred(t *testing.T, list map[string]*anypb.Any) []string {
	t.Helper()
	var out []string
	for _, packed := range list {
		l := &listenerv3.Listener{}
		if err := packed.UnmarshalTo(l); err != nil {
			t.Fatal(err)
		}
		for _, chain := range l.GetFilterChains() {
			for _, f := range chain.GetFilters() {
				manager := &hcm.HttpConnectionManager{}
				if f.GetTypedConfig().UnmarshalTo(manager) == nil && manager.GetRds() != nil {
					out = append(out, manager.GetRds().GetRouteConfigName())
				}
			}
		}
	}
	return out
}

func nameIn(t *testing.T, packed *anypb.Any) string {
	t.Helper()
	m, err := packed.UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	return nameOf(m)
}

// difference is that of resources by name.
func difference(want, got map[string]*anypb.Any) string {
	if maps.EqualFunc(want, got, samePacked) {
		return "" // The usual case, at a tenth of the price.
	}
	return cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateEmpty())
}

func samePacked(a, b *anypb.Any) bool {
	if proto.Equal(a, b) {
		return true
	}
	x, err := a.UnmarshalNew()
	if err != nil {
		return false
	}
	y, err := b.UnmarshalNew()
	return err == nil && proto.Equal(x, y)
}
