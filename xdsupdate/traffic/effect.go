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
	others []object
}

func (st *state) newReport() report {
	f := newFindings(st)
	f.meshConfig()
	var others []object
	for _, o := range st.objects.All() {
		f.object(o)
		if _, tokens := o.(*requestAuthentication); tokens || st.inboundPolicy(o) != nil {
			others = append(others, o)
		}
	}
	return report{sortedIneffective(f.found), others}
}

// moreFindings returns the findings about an object that do not depend on the state alone:
// about connected sidecars, and about keys that cannot be fetched.
func (st *state) moreFindings(o object, sidecars []*connectedSidecar) []Ineffective {
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
// the findings about one object of that kind.
type findings struct {
	*state
	found []Ineffective
	// fields contains the fields with a finding, without the reason.
	fields map[Ineffective]struct{}

	// errors are the errors of all resources of a proxy.
	errors  memo[*proxy, leftOutErrors]
	checked memo[*virtualService, checkedRules]
	// meshHasRoom is measureMesh, computed once.
	meshHasRoom func() bool
	// proxies are the routers of Gateways, see routerFor, and the sidecars of namespaces.
	proxies memo[string, *proxy]
	// labelSets are the workloads of namespaces.
	labelSets memo[string, []labelled]

	kind configstore.GroupVersionKind // of the current object
	name objectName
}

func newFindings(st *state) *findings {
	f := &findings{state: st, fields: make(map[Ineffective]struct{})}
	f.meshHasRoom = sync.OnceValue(f.measureMesh)
	return f
}

func (f *findings) object(o object) {
	f.about(o)
	o.report(f)
	f.leftOut(o)
}

// about sets the object of the following findings.
func (f *findings) about(o object) {
	f.kind, f.name = o.base().config.GroupVersionKind, o.base().objectName
}

// add records a finding. An empty field stands for the whole object.
func (f *findings) add(field, format string, args ...any) {
	found := Ineffective{Kind: f.kind, Namespace: f.name.namespace, Name: f.name.name, Field: field}
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
	services := f.world.named(host)
	if len(services) == 0 {
		return ""
	}
	return targetOf(services[0])
}

func anyService(*registry.Service) bool { return true }

func element(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
