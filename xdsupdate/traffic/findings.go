// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/memo"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/mesh"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Ineffective is an accepted object, or a part of one, that does not have the effect that it
// describes, with the reason. Findings about the mesh configuration of Options have the kind
// MeshConfig.
type Ineffective struct {
	Kind            configstore.GroupVersionKind
	Namespace, Name string
	// Field is the part, such as "spec.subsets[1]". It is empty for the whole object.
	Field string
	// Reason is a phrase, such as "no service has this host name".
	Reason string
}

// String returns "Kind namespace/name: field: reason".
func (e Ineffective) String() string {
	out := excerpt.Object(e.Kind.Kind, e.Namespace, e.Name) + ": "
	if e.Field != "" {
		out += e.Field + ": "
	}
	return out + e.Reason
}

// report contains the findings about all policies of a state, sorted. The findings of one object are
// in the order of its fields. It is immutable.
type report struct {
	found []Ineffective
	// others are the objects that moreFindings is about.
	others []objects.Object
}

func (st *state) newReport() report {
	f := newFindings(st)
	f.meshConfig()
	var others []objects.Object
	for _, o := range st.Objects.All() {
		f.object(o)
		if _, tokens := o.(*objects.RequestAuthentication); tokens || st.inboundPolicy(o) != nil {
			others = append(others, o)
		}
	}
	return report{sortedIneffective(f.found), others}
}

// moreFindings returns the findings about an object that do not depend on the state alone:
// about connected sidecars, and about keys that cannot be fetched.
func (st *state) moreFindings(o objects.Object, sidecars []*connectedSidecar) []Ineffective {
	f := newFindings(st)
	f.about(o)
	f.unfetched(o)
	f.unenforced(o, sidecars)
	return f.found
}

func sortedIneffective(list []Ineffective) []Ineffective {
	slices.SortStableFunc(list, func(a, b Ineffective) int {
		return cmp.Or(
			strings.Compare(a.Kind.Kind, b.Kind.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}

// findings collects the ineffective parts of objects. The methods that are named after a kind add
// the findings about one object of that kind, and return its effects as object does.
type findings struct {
	*state
	found []Ineffective
	// fields contains the fields with a finding, without the reason.
	fields map[Ineffective]struct{}

	// errors are the errors of all resources of a proxy.
	errors  memo.Results[*proxy, leftOutErrors]
	checked memo.Results[*objects.VirtualService, checkedRules]
	// meshHasRoom is measureMesh, computed once.
	meshHasRoom func() bool
	// proxies are the routers of Gateways, see routerFor, and the sidecars of namespaces.
	proxies memo.Results[string, *proxy]
	// labelSets are the workloads of namespaces.
	labelSets memo.Results[string, []labelled]

	kind configstore.GroupVersionKind // of the current object
	name objects.ObjectName
}

func newFindings(st *state) *findings {
	f := &findings{state: st, fields: make(map[Ineffective]struct{})}
	f.meshHasRoom = sync.OnceValue(f.measureMesh)
	return f
}

// object adds the findings about an object. It returns a function that lists the effects of the
// object, or nil if it has none.
func (f *findings) object(o objects.Object) (effects func() []Effect) {
	f.about(o)
	switch o := o.(type) {
	case *objects.VirtualService:
		effects = f.virtualService(o)
		f.leftOutRoutes(o)
	case *objects.DestinationRule:
		effects = f.destinationRule(o)
		f.refusedClusters(o)
	case *objects.Gateway:
		effects = f.gateway(o)
		f.addErrors(f.routerErrors(o))
	case *objects.Sidecar:
		effects = f.sidecar(o)
	case *objects.AuthorizationPolicy:
		effects = f.authorizationPolicy(o)
	case *objects.PeerAuthentication:
		effects = f.peerAuthentication(o)
	case *objects.RequestAuthentication:
		effects = f.requestAuthentication(o)
	}
	return effects
}

// about sets the object of the following findings.
func (f *findings) about(o objects.Object) {
	f.kind, f.name = o.Base().Config.GroupVersionKind, o.Base().ObjectName
}

// add records a finding. An empty field stands for the whole object.
func (f *findings) add(field, format string, args ...any) {
	found := Ineffective{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name, Field: field}
	f.fields[found] = struct{}{}
	found.Reason = fmt.Sprintf(format, args...)
	f.found = append(f.found, found)
}

// some reports whether accept returns true for a service with a host name.
func (f *findings) some(host registry.Hostname, accept func(*registry.Service) bool) bool {
	for s := range f.servicesOf(host) {
		if accept(s) {
			return true
		}
	}
	return false
}

// aliased returns the host that a host name is an alias for. It is empty if the host is not an
// alias.
func (f *findings) aliased(host registry.Hostname) registry.Hostname {
	services := f.world.Named(host)
	if len(services) == 0 {
		return ""
	}
	return mesh.TargetOf(services[0])
}

func anyService(*registry.Service) bool { return true }

// leftOutRoutes adds findings for the parts of a VirtualService that are left out of the resources of
// clients. It builds the resources for proxies without distinguishing labels.
func (f *findings) leftOutRoutes(v *objects.VirtualService) {
	f.addErrors(f.checkedRules(v).leftOut)
	for _, name := range v.Gateways {
		if name == objects.MeshGateway {
			f.addErrors(f.sidecarErrors(v.Namespace))
		} else if g := f.GatewayNamed(name); g != nil {
			f.addErrors(f.routerErrors(g))
		}
	}
}

// addErrors adds those of the errors of resources that are about the current object.
func (f *findings) addErrors(errs leftOutErrors) {
	for _, part := range errs[configstore.ConfigKey{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name}] {
		f.addOnce(part.Field, part.Err)
	}
}

// addOnce records a finding unless the field has one already.
func (f *findings) addOnce(field string, reason error) {
	if _, again := f.fields[Ineffective{Kind: f.kind, Namespace: f.name.Namespace, Name: f.name.Name, Field: field}]; !again {
		f.add(field, "%s", reason)
	}
}
