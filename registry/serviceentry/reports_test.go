// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestAddedServiceIsReportedAsAdd: of a host that gets one service more while another
// one changes, whichever comes first, the report is an add.
func TestAddedServiceIsReportedAsAdd(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"added first": {"10.0.0.2", "10.0.0.1"}, "changed first": {"10.0.0.1", "10.0.0.2"}} {
		s := newSystem(t, serviceentry.Options{})
		s.apply(entry("a", addresses("10.0.0.1"), "a.com"))
		s.recorder.take()
		s.apply(entry("a", edits(addresses(order...), func(e *networking.ServiceEntry) { e.Ports[0].Protocol = "TCP" }), "a.com"))
		s.expect(name, "service ns/a.com add", serviceA)
	}
}

// TestOrderOfAddresses: the order of an entry's addresses decides which of its services
// has the host name, and is no change that proxies need to know of.
func TestOrderOfAddresses(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	for _, order := range [][]string{{"10.0.0.1", "10.0.0.2"}, {"10.0.0.2", "10.0.0.1"}} {
		s.apply(entry("a", addresses(order...), "a.com"))
		diff(t, "address", s.registry.GetService("a.com").DefaultAddress, order[0])
		if order[0] == "10.0.0.2" {
			s.expect("another order")
		}
		s.recorder.take()
	}
}

// TestChangedEndpointIsOneChange: an endpoint that changes in anything but its key takes
// the place of the old one.
func TestChangedEndpointIsOneChange(t *testing.T) {
	t.Parallel()
	r := &xdstest.DeltaRecorder{}
	s := newSystemWith(t, serviceentry.Options{}, func(*recorder) xdsupdate.XDSUpdater { return r })
	s.apply(entry("a", selecting, "a.com"), workloadEntry("v", "1.1.1.1", nil), workloadEntry("w", "1.1.1.2", nil))
	r.Take()
	s.apply(workloadEntry("w", "1.1.1.2", map[string]string{"app": "web", "version": "2"}))
	r.Expect(t, "EDSDeltaUpdate External/c1 ns/a.com [~1.1.1.2:80/http]", "ProxyUpdate c1 1.1.1.2")
	r.OnCall = func(c xdstest.Call) {
		if c.Kind == "EDSDeltaUpdate" && len(c.Changes) != 1 {
			t.Errorf("%d changes in %s", len(c.Changes), c)
		}
	}
	s.apply(workloadEntry("w", "1.1.1.2", nil))
	r.Expect(t, "EDSDeltaUpdate External/c1 ns/a.com [~1.1.1.2:80/http]", "ProxyUpdate c1 1.1.1.2")
}

// TestNetworkOfEachAddress: the networks of endpoints that are alike but for their
// addresses are asked for one by one.
func TestNetworkOfEachAddress(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{NetworkOf: func(address string, _ registry.Labels) string { return "of " + address }})
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2"))
	for _, e := range s.recorder.endpoints["ns/a.com"] {
		diff(t, "network", e.Attributes().Network, "of "+e.Address())
	}
	diff(t, "endpoints", len(s.recorder.endpoints["ns/a.com"]), 2)
}
