// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// resolver resolves the backends of a route. In the mesh a route may reference the Services of
// every namespace; at a Gateway references to other namespaces need a grant.
type resolver struct {
	view

	kind Kind
	ns   string
	mesh bool

	// unresolved is the first reference that cannot be resolved.
	unresolved problem
	// named are the Services and ServiceEntries that the route references.
	named map[target]struct{}
}

// destination resolves a reference. A backend that does not exist keeps its host, so that it works
// as soon as it is created. The destination is empty if the reference is not permitted or its kind
// is unknown; the proxy responds to its requests with 500.
func (r *resolver) destination(ref *gatewayv1.BackendObjectReference) (*networking.Destination, problem) {
	group, kind, name := groupOf(ref.Group, ""), kindOf(ref.Kind, kindService), string(ref.Name)
	key := Key{namespaceOf(ref.Namespace, r.ns), name}
	if wrong := r.notGranted(group, kind, key); wrong.is() {
		return &networking.Destination{}, wrong
	}
	switch {
	case group == "" && kind == kindService:
		return r.serviceDestination(key, ref)
	case group == groupIstio && kind == "Hostname":
		if ref.Namespace != nil {
			return &networking.Destination{}, problem{reasonInvalidDestination, "a Hostname has no namespace"}
		}
		return r.hostDestination(name, ref)
	default:
		return &networking.Destination{}, problem{string(gatewayv1.RouteReasonInvalidKind), "backends of kind " + kind + " are not supported"}
	}
}

// notGranted returns the reason why a route may not reference a backend. A backend in another
// namespace needs a grant, except in the mesh.
func (r *resolver) notGranted(group, kind string, key Key) problem {
	from := reference{gatewayv1.GroupName, string(r.kind), r.ns, ""}
	if r.mesh || r.granted(from, reference{group, kind, key.Namespace, key.Name}) {
		return problem{}
	}
	return problem{
		string(gatewayv1.RouteReasonRefNotPermitted), "no ReferenceGrant allows a " + string(r.kind) + " of " + r.ns + " the backend " + key.String(),
	}
}

func (r *resolver) serviceDestination(key Key, ref *gatewayv1.BackendObjectReference) (*networking.Destination, problem) {
	if !isLabel(key.Name) || !isLabel(key.Namespace) {
		return &networking.Destination{}, problem{reasonInvalidDestination, "the backend " + key.String() + " is not the name of a Service"}
	}
	if !isPort(ref.Port) {
		return &networking.Destination{}, problem{reasonInvalidDestination, "the backend " + key.String() + " needs a port"}
	}
	r.named[target{kindService, key}] = struct{}{}
	out := destinationOf(r.c.serviceHost(key), *ref.Port)
	if r.service(key) == nil {
		return out, problem{string(gatewayv1.RouteReasonBackendNotFound), "Service " + key.String() + " does not exist"}
	}
	return out, problem{}
}

// hostDestination resolves a host. The host of a Service refers to the Service, which may need a
// grant.
func (r *resolver) hostDestination(host string, ref *gatewayv1.BackendObjectReference) (*networking.Destination, problem) {
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return &networking.Destination{}, problem{reasonInvalidDestination, "the backend " + strconv.Quote(excerpt.Name(host)) + " is not a host"}
	}
	if !isPort(ref.Port) {
		return &networking.Destination{}, problem{reasonInvalidDestination, "the backend " + host + " needs a port"}
	}
	if !strings.Contains(host, ".") { // The VirtualService may be in another route's namespace.
		host = r.c.serviceHost(Key{r.ns, host})
	}
	key, isService := r.c.serviceOfHost(host)
	if isService {
		if wrong := r.notGranted("", kindService, key); wrong.is() {
			return &networking.Destination{}, wrong
		}
	}
	entries, hidden := r.entriesSeen(r.ns, host)
	seen := len(entries) > 0
	for _, entry := range entries {
		r.named[target{kindServiceEntry, entry}] = struct{}{}
	}
	if isService {
		if s := r.service(key); s != nil {
			exported := exportedTo(s.exportTo, r.c.opts.DefaultServiceExportTo, key.Namespace, r.ns)
			seen, hidden = seen || exported, hidden || !exported
		}
	}
	switch {
	case seen:
		return destinationOf(host, *ref.Port), problem{}
	case hidden && !r.mesh: // Proxies of the Gateway may see it.
		return &networking.Destination{}, problem{string(gatewayv1.RouteReasonBackendNotFound), "the host " + host + " is not exported to " + r.ns}
	default:
		return destinationOf(host, *ref.Port), problem{string(gatewayv1.RouteReasonBackendNotFound), "no host " + host + " can be seen"}
	}
}

// isLabel reports whether a name is valid for a Service or a Namespace.
func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func isPort(port *gatewayv1.PortNumber) bool { return port != nil && *port >= 1 && *port <= 65535 }

func destinationOf(host string, port int32) *networking.Destination {
	return &networking.Destination{Host: host, Port: &networking.PortSelector{Number: uint32(port)}} //nolint:gosec // 1 to 65535
}

// weighted returns the backends of a rule whose weight is not zero.
func weighted[T any](refs []T, weight func(*T) *int32) []*T {
	var out []*T
	for i := range refs {
		if deref(weight(&refs[i]), 1) > 0 {
			out = append(out, &refs[i])
		}
	}
	return out
}

// share returns the weight of a backend among several backends. The weight of a single backend does
// not matter.
func share(weight *int32, of int) int32 {
	if of == 1 {
		return 0
	}
	return deref(weight, 1)
}

// note records a reference that cannot be resolved.
func (r *resolver) note(wrong problem) { r.unresolved = r.unresolved.or(wrong) }
