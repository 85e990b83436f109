// SPDX-License-Identifier: Apache-2.0

package ingress

import (
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configset"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// Snapshot is a result of a Converter. It never changes, and any goroutine may read it. Its
// contents are shared and read-only. The zero value is the result without objects.
type Snapshot struct {
	configs   configset.Set
	ours      pmap.Map[Key, struct{}]
	problems  pmap.Map[Key, []Problem]
	addresses []networkingv1.IngressLoadBalancerIngress
}

// Configs returns all configs of a kind, istio.Gateway or istio.VirtualService, sorted by namespace
// and name. Each call sorts them.
func (s *Snapshot) Configs(kind configstore.GroupVersionKind) []*configstore.Config {
	return s.configs.Configs(kind)
}

// Get returns a config, or nil.
func (s *Snapshot) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	return s.configs.Get(kind, name, namespace)
}

// Status returns the wanted status of an Ingress, and whether the Ingress is ours: the statuses of
// other Ingresses must not be changed. Without addresses the status is empty.
func (s *Snapshot) Status(of Key) (status networkingv1.IngressLoadBalancerStatus, ours bool) {
	if _, ours = s.ours.Get(of); !ours {
		return status, false
	}
	return networkingv1.IngressLoadBalancerStatus{Ingress: s.addresses}, true
}

// Ours yields the Ingresses that are ours, in unspecified order.
func (s *Snapshot) Ours() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		s.ours.Entries(func(e *pmap.Entry[Key, struct{}]) bool { return yield(e.Key) })
	}
}

// Problem is a part of an Ingress that has no effect.
type Problem struct {
	// Field is the path of the part, for example
	// "spec.rules[0].http.paths[1].backend.service.port.name".
	Field string
	// Message is the reason.
	Message string
}

// String returns "field: message".
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Problems returns the problems of an Ingress, in the order of its fields, or nil.
func (s *Snapshot) Problems(of Key) []Problem {
	found, _ := s.problems.Get(of)
	return found
}

// AllProblems returns the Ingresses with problems, sorted.
func (s *Snapshot) AllProblems() []Key {
	var out []Key
	for key := range s.problems.All() {
		out = append(out, key)
	}
	slices.SortFunc(out, Key.Compare)
	return out
}

// findings collects the problems of an Ingress.
type findings struct {
	schemas  configstore.Schemas
	problems []Problem
}

func (f *findings) add(field, message string) {
	f.problems = append(f.problems, Problem{field, message})
}

// valid reports whether a spec is valid, and adds its problems, which belong to a field of an
// Ingress. It does not validate names, because the names of Ingresses may have dots, unlike those
// of Gateways.
func (f *findings) valid(field string, kind configstore.GroupVersionKind, spec proto.Message) bool {
	schema, _ := f.schemas.Find(kind)
	_, violations := schema.Validate(configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: kind, Name: "name", Namespace: "namespace"}, Spec: spec,
	})
	for _, v := range violations {
		f.add(field, strings.TrimPrefix(v.String(), "spec."))
	}
	return len(violations) == 0
}
