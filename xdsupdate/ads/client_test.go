// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"testing"
	"testing/synctest"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/envoycheck"
	"github.com/pilotkit/pilotkit/internal/test/memnet"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// protocols are both protocols, by name.
func protocols() map[string]bool { return map[string]bool{"sotw": false, "delta": true} }

// node is a proxy in a namespace.
func node(name, namespace string) *core.Node {
	return &core.Node{Id: "sidecar~10.0.0.1~" + name + "." + namespace + "~" + namespace + ".svc"}
}

// client returns a connected client.
func (f *fixture) client(options xdstest.ClientOptions) *xdstest.Client {
	f.t.Helper()
	if options.Answer == nil && !options.Manual {
		options.Answer = f.accept
	}
	if options.Answer != nil {
		options.Answer = f.bounded(options.Answer)
	}
	c := xdstest.NewClient(f.dial(), options)
	f.t.Cleanup(c.Close)
	if err := c.Connect(f.context()); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// endless is more responses than a client gets in any test. One that gets them is
// sent something again and again, and time would never go on in its bubble.
const endless = 5000

// bounded answers no more after too many responses.
func (f *fixture) bounded(answer func(xdstest.Response) error) func(xdstest.Response) error {
	count, ctx := 0, f.context()
	return func(r xdstest.Response) error {
		if count++; count > endless {
			f.t.Errorf("more than %d responses, the last one %s %q", endless, short(r.TypeURL), r.Names())
			<-ctx.Done()
		}
		return answer(r)
	}
}

// accept accepts the resources that an Envoy accepts, and so also those for gRPC clients.
func (f *fixture) accept(r xdstest.Response) error {
	for _, res := range r.Resources {
		m, err := res.Message()
		if err == nil {
			err = envoycheck.Envoy(m)
		}
		if err != nil {
			f.t.Errorf("%s: %v", r.TypeURL, err)
		}
	}
	return nil
}

func (f *fixture) subscribe(c *xdstest.Client, typeURL string, names ...string) {
	f.t.Helper()
	if err := c.Subscribe(typeURL, names...); err != nil {
		f.t.Fatal(err)
	}
}

// await waits until the client has exactly the named resources of a type.
func (f *fixture) await(c *xdstest.Client, typeURL string, names ...string) {
	f.t.Helper()
	err := c.Await(f.context(), func(s xdstest.State) bool { return cmp.Equal(s.Names(typeURL), names) })
	if err != nil {
		f.t.Fatalf("%v: %s: got %q, want %q", err, typeURL, c.State().Names(typeURL), names)
	}
}

// waitApplied waits until all clients have answered their responses. In a bubble, requests that
// they have sent before count, too, because they have arrived.
func (f *fixture) waitApplied() {
	f.t.Helper()
	if _, inBubble := f.listener.(*memnet.Listener); inBubble {
		synctest.Wait()
	}
	if err := f.WaitApplied(f.context(), nil); err != nil && !errors.Is(err, ads.ErrRejected) && !errors.Is(err, ads.ErrNotUpdated) {
		for _, p := range f.Proxies() {
			f.t.Logf("%+v", p)
		}
		f.t.Fatal(err)
	}
}

// received returns the responses to a client after the first since of them.
func received(c *xdstest.Client, since int) []string {
	out := []string{}
	for _, r := range c.Responses()[since:] {
		for _, name := range r.Names() {
			out = append(out, short(r.TypeURL)+" "+name)
		}
		for _, name := range r.Removed {
			out = append(out, short(r.TypeURL)+" -"+name)
		}
		if len(r.Resources)+len(r.Removed) == 0 {
			out = append(out, short(r.TypeURL)+" nothing")
		}
	}
	return out
}

func short(typeURL string) string {
	switch typeURL {
	case envoy.ClusterType:
		return "CDS"
	case envoy.LoadAssignmentType:
		return "EDS"
	case envoy.ListenerType:
		return "LDS"
	case envoy.RouteType:
		return "RDS"
	default:
		return typeURL
	}
}

func check(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func cluster(host string) string { return envoy.ClusterName(80, registry.Hostname(host)) }

// addressesOf returns the addresses in a client's load assignment.
func addressesOf(tb testing.TB, c *xdstest.Client, host string) []string {
	tb.Helper()
	m, err := c.State().Resources(envoy.LoadAssignmentType)[cluster(host)].Message()
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, l := range m.(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
		out = append(out, addressesIn(l)...)
	}
	return out
}

func addressesIn(l *endpointv3.LocalityLbEndpoints) []string {
	var out []string
	for _, lb := range l.GetLbEndpoints() {
		out = append(out, lb.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
	}
	return out
}
