// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"net/http"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/hostname"
)

// MeshGateway stands for all sidecars and gRPC clients in the gateways of a VirtualService.
const MeshGateway = "mesh"

// VirtualService is a VirtualService with its names resolved. It is immutable.
type VirtualService struct {
	Stored
	Spec *networking.VirtualService
	// Hosts are in the order of the spec. A VirtualService without hosts is a delegate.
	Hosts []registry.Hostname
	// Gateways are "mesh" and "namespace/name".
	Gateways   []string
	Visibility Visibility
	// ownMatches is the number of matches of the rules that do not delegate. A rule without a match
	// counts as one.
	ownMatches int
	// Rules returns the HTTP rules with full names and without expanded delegates.
	Rules func() []*networking.HTTPRoute
}

func newVirtualService(c *configstore.Config, spec *networking.VirtualService, s *Settings) *VirtualService {
	v := &VirtualService{
		Stored: newStored(c), Spec: spec,
		Visibility: newVisibility(spec.GetExportTo(), s.Mesh.GetDefaultVirtualServiceExportTo(), c.Namespace),
		Gateways:   ResolveGateways(spec.GetGateways(), c.Namespace),
	}
	for _, h := range spec.GetHosts() {
		v.Hosts = append(v.Hosts, hostname.Resolve(h, c.Namespace, s.Domain))
	}
	for _, r := range spec.GetHttp() {
		if r.GetDelegate() == nil {
			v.ownMatches += max(1, len(r.GetMatch()))
		}
	}
	if len(v.Gateways) == 0 {
		v.Gateways = []string{MeshGateway}
	}
	v.Rules = sync.OnceValue(func() []*networking.HTTPRoute { return resolveRules(v, s.Domain) })
	return v
}

// ResolveGateways returns the distinct full names of gateways.
func ResolveGateways(names []string, namespace string) []string {
	var out []string
	for _, n := range names {
		if n != MeshGateway {
			n = parseObjectName(n, namespace).String()
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Delegate reports whether the VirtualService can only be included by others.
func (v *VirtualService) Delegate() bool { return len(v.Hosts) == 0 }

// BoundTo reports whether the VirtualService is bound to a gateway ("namespace/name"), or to
// "mesh".
func (v *VirtualService) BoundTo(gateway string) bool { return slices.Contains(v.Gateways, gateway) }

// Rank orders VirtualServices for proxies of a namespace before age does. VirtualServices of this
// namespace that are not public come first. An export by name gives no precedence, because any
// namespace can export to any other.
func (v *VirtualService) Rank(namespace string) int {
	if v.Namespace == namespace && !v.Visibility.Public {
		return 0
	}
	return 1
}

// BoundToGateway reports whether a VirtualService is bound to some Gateway.
func (v *VirtualService) BoundToGateway() bool {
	for _, g := range v.Gateways {
		if g != MeshGateway {
			return true
		}
	}
	return false
}

// L4Match is a match of a TCP or TLS route.
type L4Match interface {
	GetPort() uint32
	GetGateways() []string
	GetSourceLabels() map[string]string
	GetSourceNamespace() string
	GetDestinationSubnets() []string
}

// L4Route is a TCP or TLS route of a VirtualService.
type L4Route struct {
	Field   string
	Matches []L4Match
	To      []*networking.RouteDestination
	// TLS is set for a TLS route.
	TLS bool
}

// L4Routes returns the TCP routes, followed by the TLS routes.
func (v *VirtualService) L4Routes() (out []L4Route) {
	for i, r := range v.Spec.GetTcp() {
		route := L4Route{Field: Element("spec.tcp", i), To: r.GetRoute()}
		for _, m := range r.GetMatch() {
			route.Matches = append(route.Matches, m)
		}
		out = append(out, route)
	}
	for i, r := range v.Spec.GetTls() {
		route := L4Route{Field: Element("spec.tls", i), To: r.GetRoute(), TLS: true}
		for _, m := range r.GetMatch() {
			route.Matches = append(route.Matches, m)
		}
		out = append(out, route)
	}
	return out
}

// resolveRules returns the HTTP rules of a VirtualService with the full names of destinations and
// gateways. Rules without short names are shared with the spec.
func resolveRules(v *VirtualService, domain string) []*networking.HTTPRoute {
	var out []*networking.HTTPRoute
	for _, r := range v.Spec.GetHttp() {
		if !resolved(r, v.Namespace, domain) {
			r = proto.CloneOf(r)
			for d := range DestinationsIn(r) {
				d.Host = string(hostname.Resolve(d.GetHost(), v.Namespace, domain))
			}
			for _, m := range r.GetMatch() {
				m.Gateways = ResolveGateways(m.GetGateways(), v.Namespace)
			}
		}
		out = append(out, r)
	}
	return out
}

// resolved reports whether a rule contains full names only.
func resolved(r *networking.HTTPRoute, namespace, domain string) bool {
	for d := range DestinationsIn(r) {
		if string(hostname.Resolve(d.GetHost(), namespace, domain)) != d.GetHost() {
			return false
		}
	}
	return !slices.ContainsFunc(r.GetMatch(), func(m *networking.HTTPMatchRequest) bool {
		return !slices.Equal(ResolveGateways(m.GetGateways(), namespace), m.GetGateways())
	})
}

// DestinationsIn yields the destinations and mirrors of a rule.
func DestinationsIn(r *networking.HTTPRoute) func(func(*networking.Destination) bool) {
	return func(yield func(*networking.Destination) bool) {
		for _, d := range r.GetRoute() {
			if d.GetDestination() != nil && !yield(d.GetDestination()) {
				return
			}
		}
		if r.GetMirror() != nil && !yield(r.GetMirror()) {
			return
		}
		for _, m := range r.GetMirrors() {
			if m.GetDestination() != nil && !yield(m.GetDestination()) {
				return
			}
		}
	}
}

// RulesOf returns the HTTP rules of a VirtualService with full names. The rules of a delegate
// replace the rule that includes it. A rule whose delegate is missing or not visible is dropped. A
// rule whose delegate exceeds Limits.Matches is replaced by a rule that answers with 500.
func (x *Index) RulesOf(v *VirtualService) []*networking.HTTPRoute {
	rules, _ := x.PlacedRules(v)
	return rules
}

// PlacedRules returns the rules of RulesOf and the origin of each.
func (x *Index) PlacedRules(v *VirtualService) (rules []*networking.HTTPRoute, places []RulePlace) {
	add := func(place RulePlace, list ...*networking.HTTPRoute) {
		for _, r := range list {
			rules, places = append(rules, r), append(places, place)
		}
	}
	j := joining{limit: x.Settings.Matches}
	for i, r := range v.Rules() {
		d := x.DelegateOf(v, r)
		if r.GetDelegate() == nil {
			j.matches += max(1, len(r.GetMatch()))
			add(RulePlace{At: i}, r)
		} else if d != nil {
			joined := j.delegated(r, d.Rules())
			if j.over {
				add(RulePlace{i, d, true}, failingRule(r))
				continue
			}
			add(RulePlace{At: i, Delegate: d}, joined...)
		}
	}
	return rules, places
}

// MatchesOf returns the number of matches in the HTTP rules of a VirtualService and its delegates.
// It is an upper bound for the number of routes.
func (x *Index) MatchesOf(v *VirtualService) int {
	limit, n := x.Settings.Matches, v.ownMatches
	for _, r := range v.Spec.GetHttp() {
		if d := x.DelegateOf(v, r); d != nil {
			own := max(1, len(r.GetMatch()))
			if n += own * d.ownMatches; limit > 0 && n > limit {
				n += own - own*d.ownMatches // the rule is replaced by a failing one
			}
		}
	}
	return n
}

// failingRule returns a rule that answers the requests of another rule with 500.
func failingRule(r *networking.HTTPRoute) *networking.HTTPRoute {
	return &networking.HTTPRoute{
		Name: r.GetName(), Match: r.GetMatch(),
		DirectResponse: &networking.HTTPDirectResponse{Status: http.StatusInternalServerError},
	}
}

// RulePlace is the origin of a rule.
type RulePlace struct {
	// At is the position of the rule among the VirtualService's own rules.
	At int
	// Delegate is the delegate that contains the rule. It is nil if the VirtualService itself does.
	Delegate *VirtualService
	// Failing is set if the rule replaces rules that exceed a limit.
	Failing bool
}

// DestinationsOf returns the destinations of a VirtualService and its delegates.
func (x *Index) DestinationsOf(v *VirtualService) Destinations {
	out := make(Destinations)
	x.addDestinations(out, v, make(map[*VirtualService]struct{}))
	return out
}

// Destinations are hosts in lower case with the ports that routes name. Port 0 stands for a
// destination without a port.
type Destinations map[registry.Hostname]map[uint32]struct{}

// addDestinations adds the destinations of a VirtualService and of its delegates that are not in
// added.
func (x *Index) addDestinations(out Destinations, v *VirtualService, added map[*VirtualService]struct{}) {
	add := func(d *networking.Destination) {
		if d != nil {
			host := hostname.Resolve(d.GetHost(), v.Namespace, x.Settings.Domain)
			if out[host] == nil {
				out[host] = make(map[uint32]struct{}, 1)
			}
			out[host][d.GetPort().GetNumber()] = struct{}{}
		}
	}
	for _, r := range v.Spec.GetHttp() {
		for d := range DestinationsIn(r) {
			add(d)
		}
		if d := x.DelegateOf(v, r); d != nil && !v.Delegate() {
			if _, again := added[d]; !again {
				added[d] = struct{}{}
				x.addDestinations(out, d, added)
			}
		}
	}
	for _, r := range v.L4Routes() {
		for _, d := range r.To {
			add(d.GetDestination())
		}
	}
}

// DelegateOf returns the VirtualService that a rule delegates to. It is nil if there is none or it
// is not exported to the namespace of the root.
func (x *Index) DelegateOf(root *VirtualService, r *networking.HTTPRoute) *VirtualService {
	if r.GetDelegate() == nil {
		return nil
	}
	found := Named[*VirtualService](x, istio.VirtualService, DelegateName(root, r))
	if found == nil || !found.Delegate() || !found.Visibility.In(root.Namespace) {
		return nil
	}
	return found
}

// DelegateName returns the name of the delegate of a rule.
func DelegateName(root *VirtualService, r *networking.HTTPRoute) ObjectName {
	name := ObjectName{r.GetDelegate().GetNamespace(), r.GetDelegate().GetName()}
	if name.Namespace == "" {
		name.Namespace = root.Namespace
	}
	return name
}

func (v *VirtualService) labelKeys() []string {
	var out []string
	for _, rule := range v.Spec.GetHttp() {
		for _, m := range rule.GetMatch() {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	for _, r := range v.L4Routes() {
		for _, m := range r.Matches {
			out = slices.AppendSeq(out, maps.Keys(m.GetSourceLabels()))
		}
	}
	return out
}
