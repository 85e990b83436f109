// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// oneService is a discovery with one service.
type oneService struct {
	registry.ServiceDiscovery
	set *registry.ServiceSet
}

func (s oneService) ServiceSnapshot() *registry.ServiceSet { return s.set }

// TestWhatWasNotPublishedIsMadeAgain: of a push that panics before it publishes nothing
// counts as done for the push of everything that makes up for it.
func TestWhatWasNotPublishedIsMadeAgain(t *testing.T) {
	s := New(oneService{set: registry.NewServiceSet(&registry.Service{
		Hostname: "a", Ports: []*registry.Port{{Name: "http", Number: 80, Protocol: registry.ProtocolHTTP}},
	})})
	for attempt := range 2 {
		s.capture(everything(), nil)
		made, changes := s.services.provide(&PushContext{Request: everything(), moment: s.moment})
		if len(changes.Names) == 0 || made.Lookup(View{}, envoy.ClusterType, "outbound|80||a").resource == nil {
			t.Errorf("attempt %d: there is no host, with the changes %v", attempt, changes.Names)
		}
	}
	s.push(everything())
	s.capture(everything(), nil)
	if _, changes := s.services.provide(&PushContext{Request: everything(), moment: s.moment}); len(changes.Names) > 0 {
		t.Errorf("%v are made again after a push of everything", changes.Names)
	}
}
