// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"testing"

	"github.com/pilotkit/pilotkit/registry"
)

// oneService is a discovery with one service.
type oneService struct {
	noServices
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
		s.capture(everything())
		s.services.Provide(&PushContext{Request: everything(), moment: s.moment})
		if s.services.next.host("a") == nil {
			t.Errorf("attempt %d: there is no host", attempt)
		}
	}
	s.push(everything())
	if len(s.services.outdated.hosts) > 0 {
		t.Errorf("%v are left after a push of everything", s.services.outdated.hosts)
	}
}
