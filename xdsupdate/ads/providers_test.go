// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// stateProvider keeps its clusters as states, and lists them. It checks that its views have its own
// Policy.
type stateProvider struct {
	name   string
	states map[string]*ads.ResourceState
	only   bool
	hides  string // a cluster of the next providers
	t      *testing.T
}

var _ ads.Lister = (*stateProvider)(nil)

func newStateProvider(t *testing.T, name string, clusters ...string) *stateProvider {
	t.Helper()
	p := &stateProvider{name: name, states: make(map[string]*ads.ResourceState), t: t}
	for _, c := range clusters {
		state, err := ads.NewResourceState(c, &clusterv3.Cluster{Name: c, AltStatName: name})
		if err != nil {
			t.Fatal(err)
		}
		p.states[c] = state
	}
	return p
}

func (p *stateProvider) Name() string              { return p.name }
func (*stateProvider) Attach(xdsupdate.XDSUpdater) {}
func (p *stateProvider) Group(node *core.Node, _ *registry.Proxy) any {
	return p.name + " of " + node.GetId()
}

func (p *stateProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	return p, ads.Changes{}
}

func (p *stateProvider) List(v ads.View, typeURL string) (iter.Seq2[string, ads.Answer], bool) {
	p.see(v)
	return func(yield func(string, ads.Answer) bool) {
		if typeURL != envoy.ClusterType {
			return
		}
		for name, state := range p.states {
			if !yield(name, ads.Answer{State: state}) {
				return
			}
		}
	}, p.only
}

func (p *stateProvider) Names(v ads.View, typeURL string) (iter.Seq[string], bool) {
	list, only := p.List(v, typeURL)
	return func(yield func(string) bool) {
		for name := range list {
			if !yield(name) {
				return
			}
		}
	}, only
}

func (p *stateProvider) Covers(v ads.View, typeURL, name string) (covered, only bool) {
	return !p.Lookup(v, typeURL, name).Next, p.only
}

func (p *stateProvider) Lookup(v ads.View, typeURL, name string) ads.Answer {
	p.see(v)
	if name == p.hides {
		return ads.Answer{}
	}
	state := p.states[name]
	if typeURL != envoy.ClusterType || state == nil {
		return ads.Answer{Next: true}
	}
	return ads.Answer{State: state}
}

// see checks that a view has the policy that this provider returned for the proxy.
func (p *stateProvider) see(v ads.View) {
	if policy, _ := v.Policy.(string); !strings.HasPrefix(policy, p.name+" of ") {
		p.t.Errorf("%s is given a view with the policy %v", p.name, v.Policy)
	}
}

// TestProviders: the first provider that has an answer for a name counts, a wildcard covers the
// names of all of them unless one returns only, and each gets views with its own part.
func TestProviders(t *testing.T) {
	host := cluster("a.example.com")
	for protocol, delta := range protocols() {
		for _, only := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/only=%v", protocol, only), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := newStateProvider(t, "first", "one", "both"), newStateProvider(t, "second", "two", "both", host)
					second.only, first.hides = only, cluster("hidden.example.com")
					f := serve(t, ads.Options{Providers: []ads.Provider{first, second}}, service("a.example.com", "shop"), service("b.example.com", "shop"), service("hidden.example.com", "shop"))
					f.setResource("own", &clusterv3.Cluster{Name: "own", AltStatName: "own"})
					f.setResource("one", &clusterv3.Cluster{Name: "one", AltStatName: "own"})
					all := f.client(xdstest.ClientOptions{Node: node("1", "shop"), Delta: delta})
					f.subscribe(all, envoy.ClusterType)
					named := f.client(xdstest.ClientOptions{Node: node("2", "shop"), Delta: delta})
					f.subscribe(named, envoy.ClusterType, "both", cluster("b.example.com"))
					want := []string{"both", "one", host, "own", "two"}
					if !only {
						want = []string{"both", "one", host, cluster("b.example.com"), "own", "two"}
					}
					f.await(all, envoy.ClusterType, want...)
					f.await(named, envoy.ClusterType, "both", cluster("b.example.com"))
					for name, from := range map[string]string{"one": "own", "own": "own", "both": "first", "two": "second", host: "second"} {
						check(t, name, text(all, name), from)
					}
					check(t, "by name", text(named, "both"), "first")

					f.DeleteResource(envoy.ClusterType, "one")
					f.services.set(service("a.example.com", "shop"), service("c.example.com", "shop"), service("hidden.example.com", "shop"))
					f.ConfigUpdate(&xdsupdate.PushRequest{Full: true})
					f.flush()
					f.waitApplied()
					check(t, "what it hid shows again", text(all, "one"), "first")
					got := all.State().Names(envoy.ClusterType)
					check(t, "a new service", strings.Contains(fmt.Sprint(got), "c.example.com"), !only)
					f.eds("a.example.com", "shop", endpoint("10.0.0.1", 80))
					f.subscribe(named, envoy.LoadAssignmentType, host)
					f.await(named, envoy.LoadAssignmentType, host)
				})
			})
		}
	}
}

// TestPolicyOfViews: views that differ only for a provider other than the first are different.
func TestPolicyOfViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, x := &clusterProvider{group: "of all"}, newStateProvider(t, "x", "x")
		f := serve(t, ads.Options{Providers: []ads.Provider{one, x}})
		for _, id := range []string{"1", "2", "2"} {
			c := f.client(xdstest.ClientOptions{Node: node(id, "shop"), Delta: true})
			f.subscribe(c, customType)
			f.waitApplied()
		}
		views := make(map[ads.View]bool)
		for _, p := range f.Proxies() {
			views[p.View] = true
		}
		check(t, "views", len(views), 2)
		for v := range views {
			check(t, "what others are given", v.Policy, any("of all"))
		}
	})
}

// TestStateThatIsRefused: NewResourceState returns an error for invalid states.
func TestStateThatIsRefused(t *testing.T) {
	for want, make := range map[string]func() (*ads.ResourceState, error){
		"the message is nil":             func() (*ads.ResourceState, error) { return ads.NewResourceState("a", nil) },
		`the name in the message is "b"`: func() (*ads.ResourceState, error) { return ads.NewResourceState("a", ownCluster("b", 1)) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestProvidersOfOneName: New panics.
func TestProvidersOfOneName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New did not panic")
		}
	}()
	ads.New(nil, ads.Options{Providers: []ads.Provider{newStateProvider(t, "p"), newStateProvider(t, "p")}})
}
