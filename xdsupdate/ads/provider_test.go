// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"iter"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// clusterProvider provides clusters: the value that is set for a name, with the view's namespace as
// the share key. "" hides a built-in one.
type clusterProvider struct {
	mu      sync.Mutex
	updater xdsupdate.XDSUpdater
	set     map[string]string // the name of a cluster to its text
	changed []ads.ChangedName
	group   string
	regroup bool
	besides bool // a wildcard also covers the names of the next providers
	panics  bool // in Provide
	lookup  bool // panics
	built   map[string]int
}

var errBroken = errors.New("broken")

func (p *clusterProvider) Name() string                        { return "test" }
func (p *clusterProvider) Attach(updater xdsupdate.XDSUpdater) { p.updater = updater }
func (p *clusterProvider) Group(*core.Node, *registry.Proxy) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group
}

func (p *clusterProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.panics {
		panic("broken")
	}
	changes := ads.Changes{Names: p.changed, Regroup: p.regroup}
	p.changed, p.regroup = nil, false
	return clusterLayer{p, maps.Clone(p.set)}, changes
}

// change sets a cluster, for views that in accepts, and asks for a push.
func (p *clusterProvider) change(name, text string, in func(ads.View) bool) {
	p.mu.Lock()
	if p.set == nil {
		p.set, p.built = make(map[string]string), make(map[string]int)
	}
	p.set[name] = text
	p.changed = append(p.changed, ads.ChangedName{TypeURL: envoy.ClusterType, Name: name, In: in})
	p.mu.Unlock()
	if p.updater != nil {
		p.updater.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: xdsupdate.KeySet(xdsupdate.ConfigKey{Name: name})})
	}
}

// clusterLayer is the state of a clusterProvider at one moment.
type clusterLayer struct {
	*clusterProvider
	set map[string]string
}

func (l clusterLayer) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	if typeURL != envoy.ClusterType {
		return nil, false
	}
	return maps.Keys(l.set), !l.besides
}

func (l clusterLayer) Covers(_ ads.View, typeURL, name string) (covered, only bool) {
	if typeURL != envoy.ClusterType {
		return false, false
	}
	_, ok := l.set[name]
	return ok, !l.besides
}

func (l clusterLayer) Lookup(v ads.View, typeURL, name string) ads.Answer {
	text, ok := l.set[name]
	l.mu.Lock()
	panics := l.lookup
	l.mu.Unlock()
	switch {
	case panics:
		panic("broken")
	case !ok || typeURL != envoy.ClusterType:
		return ads.Answer{Next: true}
	case text == "":
		return ads.Answer{}
	}
	return ads.Answer{Share: v.Policy, Build: func() (proto.Message, error) {
		l.mu.Lock()
		l.built[name+"="+text]++
		l.mu.Unlock()
		switch text {
		case "broken":
			return nil, errBroken
		case "invalid":
			return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(-1)}, nil
		}
		return &clusterv3.Cluster{Name: name, AltStatName: text}, nil
	}}
}

func text(c *xdstest.Client, name string) string {
	r, ok := c.State().Resources(envoy.ClusterType)[name]
	if !ok {
		return "none"
	}
	m, _ := r.Message()
	out := m.(*clusterv3.Cluster).GetAltStatName()
	if strings.HasPrefix(out, "outbound") || out == "" {
		return "built in"
	}
	return out
}

func providerClient(f *fixture, opts xdstest.ClientOptions) *xdstest.Client {
	f.t.Helper()
	c := xdstest.NewClient(f.dial(), opts)
	if err := c.Connect(f.context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

// TestLastGoodOfEqualStates replaces a resource by equal states. Clients keep the first of them,
// and that one stays when the next cannot be built.
func TestLastGoodOfEqualStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clusterProvider{}
		p.change("extra", "one", nil)
		f := serve(t, ads.Options{Providers: []ads.Provider{p}})
		c := providerClient(f, xdstest.ClientOptions{Node: node("1", "shop"), Delta: true})
		if err := c.Subscribe(envoy.ClusterType); err != nil {
			t.Fatal(err)
		}
		if err := c.Await(t.Context(), func(s xdstest.State) bool { return s.Has(envoy.ClusterType, "extra") }); err != nil {
			t.Fatal(err)
		}
		for _, next := range []string{"one", "one", "", "one", "one", "", "broken"} {
			if next == "" {
				runtime.GC() // takes the states that no client has
				continue
			}
			p.change("extra", next, nil)
			if err := f.WaitApplied(t.Context(), nil); (err != nil) != (next == "broken") {
				t.Fatal(err)
			}
		}
		check(t, "the last good one stays", text(c, "extra"), "one")
	})
}

// TestLookupThatPanicked: a later push makes up for a panic of a lookup during a push that changed
// just this name, although the provider reports no change then.
func TestLookupThatPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clusterProvider{}
		p.change("extra", "one", nil)
		f := serve(t, ads.Options{Providers: []ads.Provider{p}})
		c := providerClient(f, xdstest.ClientOptions{Node: node("1", "shop"), Delta: true})
		f.subscribe(c, envoy.ClusterType)
		f.await(c, envoy.ClusterType, "extra")
		lookup := func(panics bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lookup = panics
		}
		lookup(true)
		p.change("extra", "two", nil)
		synctest.Wait()
		check(t, "while it panics", text(c, "extra"), "one")
		lookup(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		check(t, "when it does not", text(c, "extra"), "two")
	})
}

func TestProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clusterProvider{}
		host := "outbound|80||a.example.com"
		p.change("extra", "one", nil)
		f := serve(t, ads.Options{Providers: []ads.Provider{p}}, service("a.example.com", "shop"))
		clients := []*xdstest.Client{
			providerClient(f, xdstest.ClientOptions{Node: node("1", "shop"), Delta: true}),
			providerClient(f, xdstest.ClientOptions{Node: node("2", "shop")}),
			providerClient(f, xdstest.ClientOptions{Node: node("3", "billing"), Delta: true}),
		}
		for i, c := range clients {
			if err := c.Subscribe(envoy.ClusterType); err != nil {
				t.Fatal(err)
			}
			if err := c.Await(t.Context(), func(s xdstest.State) bool { return s.Has(envoy.ClusterType, "extra") }); err != nil {
				t.Fatal(i, err)
			}
		}
		expect := func(what, name string, want ...string) {
			t.Helper()
			if err := f.WaitApplied(t.Context(), nil); err != nil && !errors.Is(err, ads.ErrNotUpdated) {
				t.Fatal(err)
			}
			for i, c := range clients {
				check(t, what, text(c, name), want[i%len(want)])
			}
		}
		expect("provided", "extra", "one")
		p.mu.Lock()
		check(t, "built for all three", p.built["extra=one"], 1)
		p.mu.Unlock()
		expect("a wildcard covers what is named", host, "none")

		p.change(host, "over", nil)
		expect("in place of the built-in one", host, "over")
		p.change(host, "", nil)
		expect("hidden", host, "none")
		p.change("extra", "two", func(v ads.View) bool { return v.Namespace == "billing" })
		expect("only the views that are named are looked at", "extra", "one", "one", "two")
		p.change("extra", "broken", nil)
		expect("the last good one stays", "extra", "two")
		p.change("extra", "three", nil)
		expect("mended", "extra", "three")

		p.mu.Lock()
		p.panics = true
		p.mu.Unlock()
		p.change("extra", "lost", nil)
		expect("a panic changes nothing", "extra", "three")
		p.mu.Lock()
		p.panics, p.changed = false, nil // the lost name is not reported again
		p.mu.Unlock()
		p.change("other", "x", nil)
		expect("after a panic everything is looked at", "extra", "lost")
	})
}

// TestRegroupWaits: WaitApplied counts the responses to proxies that a push moves to another view,
// in the same push.
func TestRegroupWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clusterProvider{group: "a"}
		p.change("extra", "one", nil)
		f := serve(t, ads.Options{Providers: []ads.Provider{p}})
		c := providerClient(f, xdstest.ClientOptions{Node: node("1", "shop"), Delta: true})
		if err := c.Subscribe(envoy.ClusterType); err != nil {
			t.Fatal(err)
		}
		if err := c.Await(t.Context(), func(s xdstest.State) bool { return s.Has(envoy.ClusterType, "extra") }); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			p.mu.Lock()
			p.group, p.regroup = strings.Repeat("b", i+1), true
			p.mu.Unlock()
			want := strings.Repeat("t", i+1)
			p.change("extra", want, func(ads.View) bool { return false })
			p.change("other", want, nil) // an answer of the push itself
			if err := f.WaitApplied(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := text(c, "extra"); got != want {
				t.Fatalf("after move %d the client has %q, want %q", i, got, want)
			}
		}
	})
}
