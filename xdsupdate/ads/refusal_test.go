// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret" //nolint:gosec // a type URL

// refusable are the types that an Envoy subscribes to.
func refusable() []string {
	return []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType, secretType}
}

// valued returns a resource of a type with a value.
func valued(typeURL, name, value string) proto.Message {
	switch typeURL {
	case envoy.ClusterType:
		return &clusterv3.Cluster{Name: name, AltStatName: value}
	case envoy.LoadAssignmentType:
		return &endpointv3.ClusterLoadAssignment{ClusterName: name, NamedEndpoints: map[string]*endpointv3.Endpoint{value: {}}}
	case envoy.ListenerType:
		return &listenerv3.Listener{Name: name, StatPrefix: value}
	case envoy.RouteType:
		return &routev3.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{value}}
	default:
		inline := &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: value}}
		return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: inline}}}
	}
}

// valueOf returns the value of a resource.
func valueOf(m proto.Message) string {
	switch m := m.(type) {
	case *clusterv3.Cluster:
		return m.GetAltStatName()
	case *endpointv3.ClusterLoadAssignment:
		for value := range m.GetNamedEndpoints() {
			return value
		}
		return ""
	case *listenerv3.Listener:
		return m.GetStatPrefix()
	case *routev3.RouteConfiguration:
		return m.GetInternalOnlyHeaders()[0]
	default:
		return m.(*tlsv3.Secret).GetGenericSecret().GetSecret().GetInlineString()
	}
}

// likeEnvoy takes responses as an Envoy does: the valid clusters and listeners, while it names the
// rejected ones, and of other types the resources before the first invalid one.
type likeEnvoy struct {
	delta bool
	mu    sync.Mutex
	has   map[string]map[string]string // values by type and name
	// missing are values that are bad only for now.
	missing map[string]bool
	refused int
	largest int // the most resources of one response
}

func newLikeEnvoy(delta bool) *likeEnvoy {
	return &likeEnvoy{delta: delta, has: make(map[string]map[string]string), missing: make(map[string]bool)}
}

func (e *likeEnvoy) refuses(value string) bool {
	return strings.HasPrefix(value, "bad") || e.missing[value]
}

func (e *likeEnvoy) answer(r xdstest.Response) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.has[r.TypeURL]
	if known == nil {
		known = make(map[string]string)
		e.has[r.TypeURL] = known
	}
	whole := r.TypeURL == envoy.ClusterType || r.TypeURL == envoy.ListenerType
	listed := make(map[string]bool)
	var text []string
	for i, res := range r.Resources {
		m, err := res.Message()
		if err != nil {
			return err
		}
		name, value := r.Names()[i], valueOf(m)
		listed[name] = true
		switch {
		case !e.refuses(value):
			known[name] = value
		case whole:
			text = append(text, fmt.Sprintf("Error adding/updating %s: %s", name, value))
		default:
			e.refused++
			return errors.New(value)
		}
	}
	for _, name := range r.Removed {
		delete(known, name)
	}
	if e.largest = max(e.largest, len(r.Resources)); whole && !e.delta {
		maps.DeleteFunc(known, func(name, _ string) bool { return !listed[name] })
	}
	if text != nil {
		e.refused++
		return errors.New(strings.Join(text, "\n"))
	}
	return nil
}

// state returns the resources of a type that the client has.
func (e *likeEnvoy) state(typeURL string) map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.has[typeURL])
}

// refusalScene is a client like an Envoy, with resources that a test makes.
type refusalScene struct {
	*fixture
	typeURL string
	client  *likeEnvoy
	conn    *xdstest.Client
	mu      sync.Mutex
	values  map[string]string
}

func newRefusalScene(t *testing.T, typeURL string, delta bool, values map[string]string) *refusalScene {
	t.Helper()
	s := &refusalScene{typeURL: typeURL, client: newLikeEnvoy(delta), values: maps.Clone(values)}
	s.fixture = serve(t, ads.Options{Providers: []ads.Provider{making{typeURL, func(ads.View, *ads.PushContext) map[string]proto.Message {
		s.mu.Lock()
		defer s.mu.Unlock()
		out := make(map[string]proto.Message)
		for name, value := range s.values {
			out[name] = valued(typeURL, name, value)
		}
		return out
	}}}})
	s.conn = xdstest.NewClient(s.dial(), xdstest.ClientOptions{Delta: delta, Node: node("a", "shop"), Answer: s.bounded(s.client.answer)})
	t.Cleanup(s.conn.Close)
	if err := s.conn.Connect(context.Background()); err != nil { // longer than a test takes elsewhere
		t.Fatal(err)
	}
	return s
}

// set changes values; "" deletes one.
func (s *refusalScene) set(changes map[string]string) {
	s.mu.Lock()
	for name, value := range changes {
		if value == "" {
			delete(s.values, name)
		} else {
			s.values[name] = value
		}
	}
	s.mu.Unlock()
	s.other()
	s.flush()
}

// open subscribes as an Envoy does.
func (s *refusalScene) open(names ...string) {
	if s.typeURL == envoy.ClusterType || s.typeURL == envoy.ListenerType {
		names = nil
	}
	s.subscribe(s.conn, s.typeURL, names...)
}

// refusals are the names that the client rejects.
func (s *refusalScene) refusals() []string {
	out := []string{}
	faults, _ := s.Faults()
	for _, f := range faults {
		if f.TypeURL == s.typeURL {
			out = append(out, f.Name)
		}
	}
	return out
}

func eachRefusable(t *testing.T, test func(t *testing.T, typeURL string, delta bool)) {
	t.Helper()
	for _, typeURL := range refusable() {
		for protocol, delta := range protocols() {
			t.Run(short(typeURL)[max(0, len(short(typeURL))-6):]+" "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, typeURL, delta) })
			})
		}
	}
}

// TestRefusedBesideOthers: the client gets all other resources that come with a rejected one, at
// once. The rejection is visible until that resource is accepted.
func TestRefusedBesideOthers(t *testing.T) {
	eachRefusable(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		start := map[string]string{"a": "1", "b": "bad", "c": "1", "d": "1", "e": "1", "f": "1"}
		s := newRefusalScene(t, typeURL, delta, start)
		begun := time.Now()
		s.open("a", "b", "c", "d", "e", "f")
		synctest.Wait()
		want := map[string]string{"a": "1", "c": "1", "d": "1", "e": "1", "f": "1"}
		check(t, "first", s.client.state(typeURL), want)
		check(t, "refusals", s.refusals(), []string{"b"})

		s.set(map[string]string{"c": "2", "e": "2"})
		synctest.Wait()
		want["c"], want["e"] = "2", "2"
		check(t, "after a change of others", s.client.state(typeURL), want)
		check(t, "refusals after a change of others", s.refusals(), []string{"b"})
		err := s.WaitApplied(s.context(), nil)
		if !errors.Is(err, ads.ErrRejected) || !strings.Contains(fmt.Sprint(err), " b: ") {
			t.Errorf("WaitApplied = %v, want that b is rejected", err)
		}

		s.set(map[string]string{"b": "2"})
		synctest.Wait()
		want["b"] = "2"
		check(t, "mended", s.client.state(typeURL), want)
		check(t, "refusals when mended", s.refusals(), []string{})
		if err := s.WaitApplied(s.context(), nil); err != nil {
			t.Error(err)
		}
		check(t, "time taken", time.Since(begun), time.Duration(0))
	})
}

// TestRefusedForNow: a resource that is rejected for a reason outside it is tried again, with
// growing pauses, until it is accepted.
func TestRefusedForNow(t *testing.T) {
	eachRefusable(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newRefusalScene(t, typeURL, delta, map[string]string{"a": "1", "b": "file", "c": "1"})
		s.client.missing["file"] = true
		s.open("a", "b", "c")
		time.Sleep(5 * time.Minute)
		check(t, "refusals", s.refusals(), []string{"b"})
		if faults, _ := s.Faults(); faults[0].Times < 8 || faults[0].Times > 12 || time.Since(faults[0].Since) != 5*time.Minute {
			t.Errorf("tried %d times in five minutes, since %v", faults[0].Times, faults[0].Since)
		}
		s.client.mu.Lock()
		s.client.missing["file"] = false
		s.client.mu.Unlock()
		time.Sleep(90 * time.Second)
		check(t, "in the end", s.client.state(typeURL), map[string]string{"a": "1", "b": "file", "c": "1"})
		check(t, "refusals in the end", s.refusals(), []string{})
		since := len(s.conn.Responses())
		time.Sleep(time.Hour)
		check(t, "after it was accepted", received(s.conn, since), []string{})
	})
}

// TestRefusedAndGone: a rejection ends without a trace when its resource is removed.
func TestRefusedAndGone(t *testing.T) {
	eachRefusable(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newRefusalScene(t, typeURL, delta, map[string]string{"a": "1", "b": "bad", "c": "1"})
		s.open("a", "b", "c")
		synctest.Wait()
		check(t, "refusals", s.refusals(), []string{"b"})
		s.set(map[string]string{"b": ""})
		synctest.Wait()
		check(t, "refusals when it is gone", s.refusals(), []string{})
		if err := s.WaitApplied(s.context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestModelOfRefusals: after random rejections, the client has all valid resources in the end, and
// of the invalid ones its former states; the refusals are those of the invalid ones.
func TestModelOfRefusals(t *testing.T) {
	for _, seed := range histories.Seeds(t, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			eachRefusable(t, func(t *testing.T, typeURL string, delta bool) {
				t.Helper()
				modelOfRefusals(t, seed, typeURL, delta)
			})
		})
	}
}

func modelOfRefusals(t *testing.T, seed uint64, typeURL string, delta bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var names []string
	for i := range 1 + random.IntN(60) {
		names = append(names, fmt.Sprintf("n%02d", i))
	}
	badness := random.IntN(4)
	changes := func() map[string]string {
		out := make(map[string]string)
		for _, name := range names {
			switch n := random.IntN(20); {
			case n < badness:
				out[name] = fmt.Sprint("bad", random.IntN(100))
			case n < 12:
				out[name] = fmt.Sprint("good", random.IntN(100))
			}
		}
		return out
	}
	start := changes()
	for _, name := range names {
		if start[name] == "" {
			start[name] = "good"
		}
	}
	s := newRefusalScene(t, typeURL, delta, start)
	s.open(names...)
	for range 6 {
		if random.IntN(2) == 0 {
			synctest.Wait()
			s.knows()
		}
		s.set(changes())
	}
	synctest.Wait()
	s.knows()
	bad, got := []string{}, s.client.state(typeURL)
	for name, value := range s.values {
		if s.client.refuses(value) {
			bad = append(bad, name)
		} else if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	slices.Sort(bad)
	check(t, "refusals", s.refusals(), bad)
	if err := s.WaitApplied(s.context(), nil); (err != nil) != (len(bad) > 0) {
		t.Errorf("WaitApplied = %v, bad are %q", err, bad)
	}
	if whole := typeURL == envoy.ClusterType || typeURL == envoy.ListenerType; !testmain.IsLowered() && !whole && !delta && typeURL != envoy.LoadAssignmentType {
		check(t, "resources of the largest response", s.client.largest, 1)
	}
}
