// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// reasonRefused is the reason of conditions that report a proxy's NACK.
const reasonRefused = "RefusedByProxy"

// maxText is the maximum length of the text of a NACK or of an Infrastructure in a condition.
const maxText = 2048

// refusals are the proxies' NACKs of the resulting configs, by object.
type refusals struct {
	// routes contains the texts by route and by the Gateway config of the proxies that reject the
	// route, or "" for the mesh.
	routes map[routeKey]map[string]string
	// listeners contains the texts by the listener's Gateway config.
	listeners map[string]string
}

// SetRefusals returns the change of the proxies' NACKs: the texts for VirtualServices and Gateways
// of the converter, by their keys. It replaces all previous texts. Other keys have no effect. A
// route that proxies of a Gateway reject is not accepted by that Gateway, and a rejected listener
// is not programmed. If several routes contribute to a rejected VirtualService, all of them are
// rejected. Package refusals collects the texts from an ads.Server.
func SetRefusals(texts map[configstore.ConfigKey]string) Change {
	return Change{func(c *Converter) {
		next := refusals{routes: map[routeKey]map[string]string{}, listeners: map[string]string{}}
		for key, text := range texts {
			config := c.published.Get(key.Kind, key.Name, key.Namespace)
			if config == nil {
				continue
			}
			switch key.Kind {
			case istio.VirtualService:
				next.addRoutes(config, text)
			case istio.Gateway:
				next.listeners[key.Namespace+"/"+key.Name] = text
			}
		}
		c.replaceRefusals(next)
	}}
}

// addRoutes adds the NACK of a VirtualService to the routes that it was made from.
func (r *refusals) addRoutes(config *configstore.Config, text string) {
	spec, _ := config.Spec.(*networking.VirtualService)
	for parent := range strings.SplitSeq(config.Annotations[annotationParents], ",") {
		route, ok := parseRoute(parent)
		if !ok {
			continue
		}
		if r.routes[route] == nil {
			r.routes[route] = map[string]string{}
		}
		for _, gateway := range spec.GetGateways() {
			if gateway == "mesh" {
				gateway = ""
			}
			if said := r.routes[route][gateway]; said == "" || text < said {
				r.routes[route][gateway] = text
			}
		}
	}
}

// parseRoute parses "Kind/name.namespace". A namespace has no dots.
func parseRoute(text string) (routeKey, bool) {
	kind, rest, ok := strings.Cut(text, "/")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 {
		return routeKey{}, false
	}
	return routeKey{Kind(kind), Key{rest[dot+1:], rest[:dot]}}, true
}

// replaceRefusals replaces the NACKs and invalidates the statuses that they change.
func (c *Converter) replaceRefusals(next refusals) {
	old := c.refusals
	c.refusals = next
	for _, at := range union(old.routes, next.routes) {
		if !maps.Equal(old.routes[at], next.routes[at]) && c.routeObjects[at] != nil {
			c.mark(node{nodeRoute, at.Kind, at.Key})
		}
	}
	for _, config := range union(old.listeners, next.listeners) {
		if old.listeners[config] == next.listeners[config] {
			continue
		}
		ns, name, _ := strings.Cut(config, "/")
		gateway, serves := c.serverOf[Key{ns, name}]
		if !serves {
			continue
		}
		c.mark(node{nodeGatewayStatus, "", gateway})
		for _, set := range membersOf(c.gatewayStates[gateway]) {
			c.mark(node{nodeListenerSetStatus, "", set})
		}
	}
}

// union returns the keys of two maps, each once, in unspecified order.
func union[K comparable, V any](a, b map[K]V) []K {
	out := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, both := a[key]; !both {
			out = append(out, key)
		}
	}
	return out
}

// ofRoute returns the NACK of a route by the proxies of a parent.
func (r *refusals) ofRoute(route routeKey, result *parentResult) problem {
	by := r.routes[route]
	if len(by) == 0 {
		return problem{}
	}
	for i := range result.found {
		at, gateway := &result.found[i], ""
		if at.listener != nil {
			gateway = at.owner.Namespace + "/" + at.listener.Config
		}
		if text, refused := by[gateway]; refused {
			return problem{reasonRefused, excerpt.CutTo(text, maxText)}
		}
	}
	return problem{}
}

// ofListener returns the NACK of a listener.
func (r *refusals) ofListener(l *listener) problem {
	if text, refused := r.listeners[l.owner.Namespace+"/"+l.view.Config]; refused {
		return problem{reasonRefused, excerpt.CutTo(text, maxText)}
	}
	return problem{}
}
