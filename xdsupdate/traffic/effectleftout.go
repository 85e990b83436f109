// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
)

// leftOut adds findings for the parts of an object that are left out of the resources of clients. It
// builds the resources for proxies without distinguishing labels.
func (f *findings) leftOut(o object) {
	switch o := o.(type) {
	case *virtualService:
		f.refusedRules(o)
		for _, name := range o.gateways {
			if name == meshGateway {
				f.addErrors(f.sidecarErrors(o.namespace))
			} else if g := f.gatewayNamed(name); g != nil {
				f.addErrors(f.routerErrors(g))
			}
		}
	case *destinationRule:
		f.refusedClusters(o)
	case *gateway:
		f.addErrors(f.routerErrors(o))
	}
}

// addErrors adds those of the errors of resources that are about the current object.
func (f *findings) addErrors(errs leftOutErrors) {
	for _, part := range errs[configstore.ConfigKey{Kind: f.kind, Namespace: f.name.namespace, Name: f.name.name}] {
		f.addOnce(part.Field, part.Err)
	}
}

// unhindered returns a proxy of a namespace that sees services without a Sidecar's restrictions.
func unhindered(namespace string) *proxy { return &proxy{role: router, namespace: namespace} }

// addOnce records a finding unless the field has one already.
func (f *findings) addOnce(field string, reason error) {
	if _, again := f.fields[Ineffective{Kind: f.kind, Namespace: f.name.namespace, Name: f.name.name, Field: field}]; !again {
		f.add(field, "%s", reason)
	}
}

// refusedRules adds findings for the HTTP rules of a VirtualService that would be rejected, or exceed
// limits, wherever they apply.
func (f *findings) refusedRules(v *virtualService) {
	p, at := unhindered(v.namespace), place{gateway: meshGateway, port: unknownHostPort}
	_, errs := f.ruleRoutes(p, v, at)
	f.addErrors(newLeftOutErrors(errs))
	scope := f.rulesScope(p, v, at)
	scope.LeftOut = func(rule *networking.HTTPRoute, reason error) {
		f.addOnce(element("spec.http", slices.Index(v.rules(), rule)), failedRequests(reason))
	}
	scope.CheckRules(v.rules())
}

// refusedClusters builds the clusters of all services that a DestinationRule applies to, with the
// policies of this rule alone.
func (f *findings) refusedClusters(r *destinationRule) {
	alone := newRules([]*destinationRule{r})[0]
	for svc := range f.servicesOf(r.host) {
		f.places(alone, newService([]*registry.Service{svc}), false, func(at clusterPlace) bool {
			for _, role := range []role{sidecarProxy, router} {
				_, errs := f.checkedCluster(&proxy{role: role, namespace: r.namespace, labels: r.selector}, at.name(), &at)
				f.addErrors(newLeftOutErrors(errs))
			}
			return true
		})
	}
}
