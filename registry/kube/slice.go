// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/pilotkit/pilotkit/registry"
)

// slice has the fields of an EndpointSlice that the registry reads. It is immutable.
type slice struct {
	objectKey
	// service is the name of the service in the slice's namespace, "" if the slice belongs to no
	// service, or is of a kind that is ignored.
	service string
	// ports have distinct names: of several ports with one name the first is kept.
	ports []slicePort
	// endpoints are sorted by address, so that two states of a slice can be compared in one pass,
	// independent of the order in the API server.
	endpoints []sliceEndpoint
}

type slicePort struct {
	name   string
	number uint32
}

// sliceEndpoint is one address of one endpoint of a slice.
type sliceEndpoint struct {
	address string
	// pod is the target, the zero key if the endpoint has no target that is a pod.
	pod objectKey
	// position is the index in the object.
	position   int32
	conditions conditions
}

// conditions are the conditions of an endpoint, with the defaults of Kubernetes: an endpoint is
// ready unless the condition is false, serving if it is ready, and not terminating.
type conditions uint8

const (
	ready conditions = 1 << iota
	serving
	terminating
)

// convertSlice returns the fields that are kept of an EndpointSlice. Slices of host names, and
// slices of imported multi-cluster services, belong to no service.
func convertSlice(s *discoveryv1.EndpointSlice) *slice {
	out := &slice{objectKey: objectKey{canonical(s.Namespace), s.Name}}
	if _, imported := s.Labels[labelMultiCluster]; imported || s.AddressType == discoveryv1.AddressTypeFQDN {
		return out
	}
	out.service = s.Labels[labelServiceName]
	if out.service == "" {
		return out
	}
	for _, p := range s.Ports {
		var port slicePort
		if p.Name != nil {
			port.name = canonical(*p.Name)
		}
		if p.Port != nil {
			port.number = uint32(*p.Port)
		}
		if !slices.ContainsFunc(out.ports, func(q slicePort) bool { return q.name == port.name }) {
			out.ports = append(out.ports, port)
		}
	}
	out.endpoints = make([]sliceEndpoint, 0, len(s.Endpoints))
	for i := range s.Endpoints {
		out.endpoints = appendEndpoints(out.endpoints, s.Namespace, &s.Endpoints[i])
	}
	slices.SortFunc(out.endpoints, func(a, b sliceEndpoint) int {
		return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(a.position, b.position))
	})
	return out
}

func appendEndpoints(out []sliceEndpoint, namespace string, e *discoveryv1.Endpoint) []sliceEndpoint {
	converted := sliceEndpoint{conditions: conditionsOf(&e.Conditions)}
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
		converted.pod = objectKey{canonical(e.TargetRef.Namespace), e.TargetRef.Name}
		if converted.pod.namespace == "" {
			converted.pod.namespace = canonical(namespace)
		}
	}
	for _, a := range e.Addresses {
		converted.address, converted.position = a, int32(len(out))
		out = append(out, converted)
	}
	return out
}

func conditionsOf(c *discoveryv1.EndpointConditions) conditions {
	var out conditions
	if c.Ready == nil || *c.Ready {
		out |= ready
	}
	if c.Serving != nil && *c.Serving || c.Serving == nil && out&ready != 0 {
		out |= serving
	}
	if c.Terminating != nil && *c.Terminating {
		out |= terminating
	}
	return out
}

// health returns the health of an endpoint of a service.
func (s *service) health(c conditions) registry.HealthStatus {
	switch {
	case c&ready != 0:
		return registry.Healthy
	case c&terminating != 0 && c&serving != 0 && s.sessions():
		return registry.Draining
	case c&terminating != 0:
		return registry.Terminating
	default:
		return registry.UnHealthy
	}
}
