// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// boundStage has a Gateway with a server on each bind, beside another Gateway.
func boundStage(tb testing.TB, directory string, binds ...string) *scene {
	tb.Helper()
	gateway := gatewayOf()
	for _, bind := range binds {
		s := serverOf(0, "HTTP", "", "*")
		if s.Bind = bind; !strings.HasPrefix(bind, "unix://") {
			s.Port.Number = 8080
		}
		gateway.Servers = append(gateway.Servers, s)
	}
	var configs configList
	configs.add(istio.Gateway, "good/a", gatewayOf(serverOf(80, "HTTP", "", "*")))
	configs.add(istio.Gateway, "evil/b", gateway)
	configs.add(istio.VirtualService, "shop/v", toCart("/", []string{"good/a", "evil/b"}, "cart.example.com"))
	return stage(tb, traffic.Options{UnixSockets: directory}, configs, cartPopulation())
}

// TestBinds: where nothing can listen, or may, there is no listener, and the server is
// reported; what spells one address is one listener; other Gateways are served all the
// same. Envoy deletes the file at the path of a unix socket, so that only files in the
// directory of the host are bound.
func TestBinds(t *testing.T) {
	const directory = "/run/gateways/"
	for bind, want := range map[string]struct{ directory, listener, reason string }{
		"":                               {"", "0.0.0.0_8080", ""},
		"10.0.0.1":                       {"", "10.0.0.1_8080", ""},
		"::ffff:10.0.0.1":                {"", "10.0.0.1_8080", ""},
		"0:0:0:0:0:0:0:1":                {"", "::1_8080", ""},
		"fe80::1%eth0":                   {"", "", "it has a zone"},
		"224.0.0.1":                      {"", "", "an address of many"},
		"ff02::1":                        {"", "", "an address of many"},
		"a.example.com":                  {"", "", "not an IP address"},
		"10.0.0.1\x00":                   {"", "", "not an IP address"},
		"unix://@name":                   {"", "unix://@name_0", ""},
		"unix://@":                       {"", "", "files are not allowed"},
		"unix://":                        {"", "", "files are not allowed"},
		"unix:///run/gateways/a.sock":    {"", "", "files are not allowed (Options.UnixSockets)"},
		"unix:///etc/passwd":             {directory, "", "the file is not in /run/gateways"},
		"unix:///run/gateways/b.sock":    {directory, "unix:///run/gateways/b.sock_0", ""},
		"unix:///run/gateways/x/b.sock":  {directory, "unix:///run/gateways/x/b.sock_0", ""},
		"unix:///run//gateways/./c.sock": {directory, "unix:///run/gateways/c.sock_0", ""},
		"unix:///run/gateways/../x":      {directory, "", "the file is not in"},
		"unix:///run/gateways":           {directory, "", "the file is not in"},
		"unix:///run/gateways/":          {directory, "", "the file is not in"},
		"unix:///run/gateways-x/a":       {directory, "", "the file is not in"},
		"unix://run/gateways/a":          {directory, "", "the file is not in"},
		"unix:///run/gateways/a\x00b":    {directory, "", "control character"},
		"unix:///run/gateways/" + strings.Repeat("a", 95): {directory, "", "more than 107 bytes"},
		"unix://@" + strings.Repeat("a", 107):             {directory, "", "more than 107 bytes"},
		"unix:///a":                                       {"/", "unix:///a_0", ""},
		"unix:///run/a/b":                                 {"run", "", "files are not allowed"},
	} {
		s := boundStage(t, want.directory, bind)
		listeners := []string{"0.0.0.0_80"}
		if want.listener != "" {
			listeners = append(listeners, want.listener)
		}
		slices.Sort(listeners)
		got := s.ask(edge(), envoy.ListenerType)
		if diff := cmp.Diff(listeners, got.names); diff != "" || len(got.failed) > 0 {
			t.Errorf("bind %q: %v (-want +got):\n%s", bind, got.failed, diff)
		}
		if routes := s.ask(edge(), envoy.RouteType).names; len(routes) != len(listeners) {
			t.Errorf("bind %q: the route configurations are %q for %q", bind, routes, listeners)
		}
		reported := s.reason("b", "spec.servers[0].bind")
		if (reported != "") != (want.reason != "") || !strings.Contains(reported, want.reason) {
			t.Errorf("bind %q: the reason is %q, want %q", bind, reported, want.reason)
		}
	}
}

// TestSpellingsOfABind: several spellings of one address are one listener.
func TestSpellingsOfABind(t *testing.T) {
	s := boundStage(t, "/run", "unix:///run/a", "unix:///run//a", "unix:///run/./b/../a", "::1", "0::1", "10.0.0.1", "::ffff:10.0.0.1")
	want := []string{"0.0.0.0_80", "10.0.0.1_8080", "::1_8080", "unix:///run/a_0"}
	if diff := cmp.Diff(want, s.ask(edge(), envoy.ListenerType).names); diff != "" {
		t.Error(diff)
	}
}
