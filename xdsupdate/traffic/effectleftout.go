// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"math"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// leftOut adds findings for the parts of an object that are left out of the resources of clients. It
// builds the resources for proxies without distinguishing labels.
func (f *findings) leftOut(o objects.Object) {
	switch o := o.(type) {
	case *objects.VirtualService:
		f.addErrors(f.checkedRules(o).leftOut)
		for _, name := range o.Gateways {
			if name == objects.MeshGateway {
				f.addErrors(f.sidecarErrors(o.Namespace))
			} else if g := f.GatewayNamed(name); g != nil {
				f.addErrors(f.routerErrors(g))
			}
		}
	case *objects.DestinationRule:
		f.refusedClusters(o)
	case *objects.Gateway:
		f.addErrors(f.routerErrors(o))
	}
}

// addErrors adds those of the errors of resources that are about the current object.
func (f *findings) addErrors(errs leftOutErrors) {
	for _, part := range errs[configstore.ConfigKey{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name}] {
		f.addOnce(part.Field, part.Err)
	}
}

// unhindered returns a proxy of a namespace that sees services without a Sidecar's restrictions.
func unhindered(namespace string) *proxy {
	return &proxy{Proxy: objects.Proxy{Role: objects.Router, Namespace: namespace}}
}

// addOnce records a finding unless the field has one already.
func (f *findings) addOnce(field string, reason error) {
	if _, again := f.fields[Ineffective{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name, Field: field}]; !again {
		f.add(field, "%s", reason)
	}
}

// checkedRules are upper bounds for the number of routes of a VirtualService in a virtual host and for
// their size, and the errors for rules that would be rejected or exceed limits.
type checkedRules struct {
	routes, bytes int
	leftOut       leftOutErrors
}

func (f *findings) checkedRules(v *objects.VirtualService) checkedRules {
	return f.checked.Get(v, func() checkedRules {
		out, limits := checkedRules{routes: math.MaxInt32}, f.settings.limits
		_, _, errs := f.allRuleRoutes(unhindered(v.Namespace), v, place{gateway: objects.MeshGateway, port: unknownHostPort},
			func(scope *xdsbuild.RouteScope, rules []*networking.HTTPRoute) []*routev3.Route {
				everywhere := scope.CheckRules(rules)
				out.routes, out.bytes = len(everywhere), sizeOf(everywhere)
				if exceeds(out.routes, limits.Routes) || exceeds(out.bytes, limits.RouteBytes) {
					return scope.Routes(rules)
				}
				return everywhere
			})
		out.leftOut = newLeftOutErrors(errs)
		return out
	})
}

// refusedClusters builds the clusters of all services that a DestinationRule applies to, with the
// policies of this rule alone.
func (f *findings) refusedClusters(r *objects.DestinationRule) {
	alone := objects.NewRules([]*objects.DestinationRule{r})[0]
	for svc := range f.servicesOf(r.Host) {
		f.places(alone, mesh.NewService([]*registry.Service{svc}), false, func(at clusterPlace) bool {
			for _, role := range []objects.Role{objects.SidecarProxy, objects.Router} {
				_, errs := f.checkedCluster(&proxy{Proxy: objects.Proxy{Role: role, Namespace: r.Namespace, Labels: r.Selector}}, at.name(), &at)
				f.addErrors(newLeftOutErrors(errs))
			}
			return true
		})
	}
}
