// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/difference"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// target is the Target of a test.
type target struct {
	of       *Type
	client   *Client
	scope    Scope
	snapshot *resource.Snapshot
	// unknown means that the snapshot is not known yet, as that of a new selection.
	unknown bool
	// found is the last difference, from one snapshot to another.
	found    *difference.Difference
	from, to *resource.Snapshot
	traits   difference.Traits
}

func (t *target) Scope() Scope { return t.scope }
func (t *target) Snapshot() *resource.Snapshot {
	if t.unknown {
		return nil
	}
	return t.snapshot
}

func (t *target) Named(name string) (bool, bool) {
	r := t.snapshot.Find(name)
	return r != nil, false
}
func (t *target) Searching() bool { return false }
func (t *target) Announcement(base, of *resource.State) *Announcement {
	return NewAnnouncement(base, of)
}
func (t *target) Moved(*resource.Snapshot) {}

func (t *target) Difference() *difference.Difference {
	traits := t.client.Traits(t.of)
	if t.unknown || t.of.Has == t.snapshot && !t.of.Returning {
		return nil
	}
	if t.found == nil || t.from != t.of.Has || t.to != t.snapshot || t.traits != traits {
		t.from, t.to, t.traits = t.of.Has, t.snapshot, traits
		t.found = difference.State[int]{Kind: t.of.kind(), Snapshot: t.snapshot}.Difference(t.of.Has, traits)
	}
	return t.found
}

// scene is a client, and its target.
type scene struct {
	Client
	now  Moment
	look time.Time
	read int // responses of the queue
}

const timeout = 15 * time.Second

// newScene returns a client of four types, an Envoy or a gRPC client, without resources and with an
// empty target.
func newScene(delta, grpc bool) *scene {
	s := &scene{now: Moment{time.Unix(1_000_000, 0), 1}}
	s.Delta, s.GRPC, s.Timeout = delta, grpc, timeout
	for _, url := range []string{envoy.ClusterType, envoy.LoadAssignmentType, envoy.ListenerType, envoy.RouteType} {
		if grpc && url == envoy.ListenerType {
			continue
		}
		t := &Type{URL: url, Has: &resource.Snapshot{}, Open: true}
		from := &target{of: t, client: &s.Client, scope: Names, snapshot: &resource.Snapshot{}}
		if !grpc && (url == envoy.ClusterType || url == envoy.ListenerType) {
			from.scope = Everything
		}
		t.Target = from
		s.Add(t)
	}
	return s
}

func (t *Type) target() *target { return t.Target.(*target) }

// want changes the target of the client, in one push; a marker removes a resource.
func (s *scene) want(list ...*resource.State) {
	s.now.Epoch++
	for _, r := range list {
		t := s.typeOf(r.TypeURL)
		edit := resource.Edit{Name: r.Name, Resource: r}
		if r.Marker == resource.Unknown {
			edit.Resource = nil
		}
		t.target().snapshot = t.target().snapshot.With([]resource.Edit{edit})
	}
}

func (s *scene) typeOf(url string) *Type {
	return s.Types[slices.IndexFunc(s.Types, func(t *Type) bool { return t.URL == url })]
}

// plan carries out plans until no step is left, and returns the responses: "CDS a", or "CDS -a".
func (s *scene) plan() []string {
	for range 100 {
		result := Plan(&s.Client, s.now)
		s.Memory, s.look = result.Memory, earlier(s.look, result.Look)
		if result.To == nil {
			return s.sent()
		}
		if result.Apart {
			result.Content = result.To.kind().NewContent(nil, result.To.Has, s.Traits(result.To))
			result.After = result.Content.After
			result.To.Apart = result.To.Apart[1:]
		}
		s.Sent(result.Step, s.now)
	}
	panic("there is always one more step")
}

// sent returns the resources in the responses since the last call.
func (s *scene) sent() (out []string) {
	for ; s.read < len(s.Queue); s.read++ {
		c := s.Queue[s.read].Content
		for _, r := range c.Listed {
			out = append(out, short[c.TypeURL]+" "+r.Name)
		}
		for _, name := range c.Removed {
			out = append(out, short[c.TypeURL]+" -"+name)
		}
		if c.Full && len(c.Listed) == 0 {
			out = append(out, short[c.TypeURL]+" full")
		}
	}
	s.Queue, s.read = nil, 0
	return out
}

var short = map[string]string{
	envoy.ClusterType: "CDS", envoy.LoadAssignmentType: "EDS", envoy.ListenerType: "LDS", envoy.RouteType: "RDS",
}

// answer ACKs the responses of types.
func (s *scene) answer(types ...*Type) {
	for _, t := range types {
		for len(t.Acks.Unanswered) > 0 {
			var o acks.Response
			t.Acks.Answer(t.Acks.Unanswered[0].Nonce, false, &o)
			s.Answered(t, &o, s.now.Time)
		}
		t.Open = true
	}
}

// settle has the client take everything, and time pass.
func (s *scene) settle() {
	for range 10 {
		s.plan()
		s.answer(s.Types...)
		s.pass(time.Second)
	}
}

func (s *scene) pass(d time.Duration) { s.now.Time = s.now.Add(d) }

// made has the resources of tests, which are made once.
var made sync.Map

func makeOnce(url, name, key string, message func() proto.Message) *resource.State {
	key = url + name + key
	if r, ok := made.Load(key); ok {
		return r.(*resource.State)
	}
	r := &resource.State{TypeURL: url, Name: name, Build: func() (proto.Message, error) { return message(), nil }}
	r.Exists()
	known, _ := made.LoadOrStore(key, r)
	return known.(*resource.State)
}

func noMore(url, name string) *resource.State { return resource.NewMarker(url, name, resource.Unknown) }

// cluster returns a state of a cluster that takes its endpoints from an assignment.
func cluster(name string, state int) *resource.State {
	return makeOnce(envoy.ClusterType, name, fmt.Sprint(state), func() proto.Message {
		return &clusterv3.Cluster{
			Name: name, AltStatName: fmt.Sprint(state), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
			EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: viaADS()},
		}
	})
}

func viaADS() *core.ConfigSource {
	return &core.ConfigSource{ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
}

func assignment(name string, state int) *resource.State {
	return makeOnce(envoy.LoadAssignmentType, name, fmt.Sprint(state), func() proto.Message {
		return &endpointv3.ClusterLoadAssignment{ClusterName: name, NamedEndpoints: map[string]*endpointv3.Endpoint{fmt.Sprint(state): {}}}
	})
}

// listener returns a listener in front of route configurations, whose filters deny as many paths.
func listener(name string, denied int, to ...string) *resource.State {
	return makeOnce(envoy.ListenerType, name, fmt.Sprint(denied, to), func() proto.Message {
		rules := &rbacv3.RBAC{Action: rbacv3.RBAC_DENY, Policies: make(map[string]*rbacv3.Policy)}
		for i := range denied {
			rules.Policies[fmt.Sprint(i)] = &rbacv3.Policy{}
		}
		chain := &listenerv3.FilterChain{}
		for _, name := range to {
			chain.Filters = append(chain.Filters, &listenerv3.Filter{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&hcm.HttpConnectionManager{
				RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{RouteConfigName: name, ConfigSource: viaADS()}},
				HttpFilters:    []*hcm.HttpFilter{{Name: "rbac", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: packed(&httprbac.RBAC{Rules: rules})}}},
			})}})
		}
		return &listenerv3.Listener{Name: name, FilterChains: []*listenerv3.FilterChain{chain}}
	})
}

func packed(m proto.Message) *anypb.Any {
	out, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return out
}

// route returns a route configuration with a virtual host for each "domain cluster".
func route(name string, pairs ...string) *resource.State {
	return makeOnce(envoy.RouteType, name, strings.Join(pairs, ","), func() proto.Message {
		c := &routev3.RouteConfiguration{Name: name}
		for _, pair := range pairs {
			domain, cluster, _ := strings.Cut(pair, " ")
			c.VirtualHosts = append(c.VirtualHosts, &routev3.VirtualHost{Name: domain, Domains: []string{domain}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
			}}})
		}
		return c
	})
}

func hashOf(name string) uint64 { return xxhash.Sum64String(name) }
