// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// hostKey identifies a VirtualService: a host of a listener, or of the mesh.
type hostKey struct {
	mesh bool
	// namespace is the namespace of the Gateway config, or, in the mesh, of the routes.
	namespace string
	gateway   string // the name of the config
	host      string
	port      int32 // only in the mesh; 0 means all ports
}

func (k hostKey) compare(l hostKey) int {
	mesh := 0
	if k.mesh != l.mesh {
		mesh = 1
		if !k.mesh {
			mesh = -1
		}
	}
	return cmp.Or(mesh, strings.Compare(k.namespace, l.namespace), strings.Compare(k.gateway, l.gateway),
		strings.Compare(k.host, l.host), cmp.Compare(k.port, l.port))
}

// config returns the name of the VirtualService.
func (k hostKey) config() string {
	switch {
	case !k.mesh:
		return k.namespace + "~" + k.gateway + "~" + k.host
	case k.port != 0:
		return k.namespace + "~" + strconv.Itoa(int(k.port)) + "~" + k.host
	default:
		return k.namespace + "~" + k.host
	}
}

// contribution contains the HTTP routes of one route object for a host.
type contribution struct {
	from    routeKey
	created metav1.Time
	routes  []*networking.HTTPRoute
	// consumer is set if it applies only to clients of the route's namespace.
	consumer bool
}

func (a *contribution) equal(b *contribution) bool {
	return a.created.Equal(&b.created) && a.consumer == b.consumer && slices.EqualFunc(a.routes, b.routes, func(x, y *networking.HTTPRoute) bool {
		return x == y || proto.Equal(x, y)
	})
}

// compare orders contributions by precedence: older routes first, then by "namespace/name".
func (a *contribution) compare(b *contribution) int {
	return cmp.Or(a.created.Compare(b.created.Time), strings.Compare(a.from.String(), b.from.String()),
		strings.Compare(string(a.from.Kind), string(b.from.Kind)))
}

// computeHost recomputes the VirtualService of a host from all its routes. It is in the namespace
// of the first route.
func (c *Converter) computeHost(key hostKey) {
	old, had := c.hostConfigs[key]
	parts := sortedContributions(c.hosts[key])
	if len(parts) == 0 {
		delete(c.hosts, key)
		delete(c.hostConfigs, key)
		if had {
			c.publish(istio.VirtualService, old, nil)
		}
		return
	}
	at := Key{parts[0].from.Namespace, key.config()}
	if had && old != at {
		c.publish(istio.VirtualService, old, nil)
	}
	c.hostConfigs[key] = at
	spec := &networking.VirtualService{Hosts: []string{key.host}, Gateways: []string{"mesh"}}
	if !key.mesh {
		spec.Gateways = []string{key.namespace + "/" + key.gateway}
	}
	if slices.ContainsFunc(parts, func(p *contribution) bool { return p.consumer }) {
		spec.ExportTo = ownNamespace()
	}
	var parents []string
	for _, part := range parts {
		parents = append(parents, string(part.from.Kind)+"/"+part.from.Name+"."+part.from.Namespace)
		spec.Http = append(spec.Http, part.routes...)
	}
	slices.SortStableFunc(spec.Http, byPrecedence)
	config := c.config(istio.VirtualService, at, parts[0].created, map[string]string{
		annotationParents: strings.Join(parents, ","), annotationRouteSemantics: semanticsGateway,
	})
	config.Spec = spec
	c.publish(istio.VirtualService, at, config)
}

// ownNamespace returns the exportTo of a VirtualService for clients of its own namespace only.
// There it takes precedence over VirtualServices that are exported to all namespaces.
func ownNamespace() []string { return []string{"."} }

// byPrecedence orders routes of one host: exact paths, prefixes and regular expressions, longer
// ones first; then routes with a method, with more headers, with more query parameters. Equal
// routes stay in the order of the route objects and of their rules. Preflight routes come after the
// routes of rules for the same path.
func byPrecedence(a, b *networking.HTTPRoute) int {
	if len(a.Match) == 0 || len(b.Match) == 0 {
		return cmp.Compare(len(b.Match), len(a.Match))
	}
	x, y := a.Match[0], b.Match[0]
	rankX, lengthX := pathRank(x.Uri)
	rankY, lengthY := pathRank(y.Uri)
	preflight := 0
	if isPreflight(a) != isPreflight(b) {
		preflight = -1
		if isPreflight(a) {
			preflight = 1
		}
	}
	return cmp.Or(cmp.Compare(rankX, rankY), cmp.Compare(lengthY, lengthX), preflight, cmp.Compare(count(y.Method), count(x.Method)),
		cmp.Compare(len(y.Headers), len(x.Headers)), cmp.Compare(len(y.QueryParams), len(x.QueryParams)))
}

func pathRank(path *networking.StringMatch) (rank, length int) {
	switch m := path.GetMatchType().(type) {
	case *networking.StringMatch_Exact:
		return 0, len(m.Exact)
	case *networking.StringMatch_Prefix:
		return 1, len(m.Prefix)
	case *networking.StringMatch_Regex:
		return 2, len(m.Regex)
	default:
		return math.MaxInt, 0
	}
}

func count(m *networking.StringMatch) int {
	if m == nil {
		return 0
	}
	return 1
}
