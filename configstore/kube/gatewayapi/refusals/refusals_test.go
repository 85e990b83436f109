// SPDX-License-Identifier: Apache-2.0

package refusals_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/refusals"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

var (
	_ refusals.Server   = (*ads.Server)(nil)
	_ refusals.Statuses = (*gatewayapi.Cache)(nil)
	_ refusals.Statuses = (*cluster.Cache)(nil)
)

// server is a Server whose proxies reject the objects that a test sets.
type server struct {
	mu       sync.Mutex
	faults   []ads.Fault
	progress chan struct{}
	looks    int
}

func (s *server) Faults() (list []ads.Fault, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.progress == nil {
		s.progress = make(chan struct{})
	}
	return s.faults, s.progress
}

// answers makes the proxies respond, and reject some objects from then on.
func (s *server) answers(faults ...ads.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
	if s.progress != nil {
		close(s.progress)
		s.progress = nil
	}
}

// converter is a Converter that is safe for two goroutines.
type converter struct {
	mu sync.Mutex
	*gatewayapi.Converter
}

func (c *converter) Apply(changes ...gatewayapi.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Converter.Apply(changes...)
}

// accepted returns the reason and message of a route's condition.
func (c *converter) accepted(route string) (reason, message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := gatewayapi.ObjectKey{Kind: gatewayapi.KindHTTPRoute, Key: gatewayapi.Key{Namespace: "shop", Name: route}}
	for _, condition := range c.Snapshot().Status(key).(*gatewayv1.RouteStatus).Parents[0].Conditions {
		if condition.Type == string(gatewayv1.RouteConditionAccepted) {
			return condition.Reason, condition.Message
		}
	}
	return "", ""
}

func route(name string) gatewayapi.Change {
	return gatewayapi.Set(&gatewayv1.HTTPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(name + ".example.com")},
			Rules:           []gatewayv1.HTTPRouteRule{{}},
		},
	})
}

// newConverter returns a converter with two routes, and their VirtualServices.
func newConverter() (c *converter, cart, other configstore.ConfigKey) {
	c = &converter{Converter: gatewayapi.NewConverter()}
	c.Apply(
		gatewayapi.Set(&gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "istio", Listeners: []gatewayv1.Listener{
				{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
			}},
		}), route("cart"), route("other"),
	)
	for _, config := range c.Snapshot().Configs(istio.VirtualService) {
		if config.Annotations["internal.istio.io/parents"] == "HTTPRoute/cart.shop" {
			cart = config.Key()
		} else {
			other = config.Key()
		}
	}
	return c, cart, other
}

// TestRun: the NACK of a route is in the status of that route only, until the proxy has accepted
// the route. The server is not read after each of many responses.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cart, other := newConverter()
		s, stop, ended := &server{}, make(chan struct{}), make(chan struct{})
		go func() {
			refusals.Run(s, c, stop)
			close(ended)
		}()
		expect := func(route, reason, message string) {
			t.Helper()
			if gotReason, got := c.accepted(route); gotReason != reason || message != "" && got != message {
				t.Errorf("%s: %s %q, want %s %q", route, gotReason, got, reason, message)
			}
		}
		synctest.Wait()
		expect("cart", "Accepted", "")
		s.answers(ads.Fault{Status: ads.FaultLeftOut, Object: cart, Text: "too large"})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		expect("cart", "RefusedByProxy", "a proxy refuses it: too large")
		expect("other", "Accepted", "")

		s.answers(ads.Fault{Status: ads.FaultBuiltWithout, Object: other, Text: "no such thing"}, ads.Fault{Status: ads.FaultSearching, Text: "?"})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		expect("cart", "Accepted", "")
		expect("other", "RefusedByProxy", "it is left out for all proxies: no such thing")

		before := s.looks
		for range 1000 {
			s.answers()
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		expect("other", "Accepted", "")
		if looks := s.looks - before; looks > 11 {
			t.Errorf("%d looks within a second", looks)
		}
		before = s.looks
		time.Sleep(time.Hour)
		if looks := s.looks - before; looks > 1 {
			t.Errorf("%d looks while nothing happens", looks)
		}
		close(stop)
		<-ended
	})
}

// TestRefusedAgain: if another route contributes to a rejected VirtualService, an identical NACK
// rejects that route, too.
func TestRefusedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, cart, _ := newConverter()
		s, stop := &server{faults: []ads.Fault{{Status: ads.FaultLeftOut, Object: cart, Text: "too large"}}}, make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { refusals.Run(s, c, stop) })
		synctest.Wait()
		late := &gatewayv1.HTTPRoute{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "late"},
			Spec: gatewayv1.HTTPRouteSpec{
				CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
				Hostnames:       []gatewayv1.Hostname{"cart.example.com"}, Rules: []gatewayv1.HTTPRouteRule{{}},
			},
		}
		c.Apply(gatewayapi.Set(late))
		s.answers(slices.Clone(s.faults)...)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		for _, name := range []string{"cart", "late"} {
			if reason, _ := c.accepted(name); reason != "RefusedByProxy" {
				t.Errorf("%s: %s", name, reason)
			}
		}
		close(stop)
		running.Wait()
	})
}
