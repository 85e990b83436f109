// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"cmp"
	"iter"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/configset"
	"github.com/pilotkit/pilotkit/internal/pmap"
)

// ObjectKey identifies an object with a status.
type ObjectKey struct {
	Kind Kind
	Key
}

// String returns "Kind/namespace/name".
func (k ObjectKey) String() string { return string(k.Kind) + "/" + k.Key.String() }

// Compare orders by kind, namespace and name.
func (k ObjectKey) Compare(l ObjectKey) int {
	return cmp.Or(strings.Compare(string(k.Kind), string(l.Kind)), k.Key.Compare(l.Key))
}

// Status is the wanted status of an object: *gatewayv1.GatewayClassStatus,
// *gatewayv1.GatewayStatus, *gatewayv1.ListenerSetStatus, *gatewayv1.RouteStatus for all kinds of
// routes, or *gatewayv1.PolicyStatus. The transition time of a condition whose status has changed
// is zero; the writer of the status sets it.
type Status any

// Snapshot is a result of a Converter. It never changes, and any goroutine may read it. Its
// contents are shared and read-only. The zero value is the result without objects.
type Snapshot struct {
	configs  configset.Set
	statuses pmap.Map[ObjectKey, Status]
}

// Configs returns all configs of a kind, istio.Gateway, istio.VirtualService or
// istio.DestinationRule, sorted by namespace
// and name. Each call sorts them.
func (s *Snapshot) Configs(kind configstore.GroupVersionKind) []*configstore.Config {
	return s.configs.Configs(kind)
}

// Get returns a config, or nil.
func (s *Snapshot) Get(kind configstore.GroupVersionKind, name, namespace string) *configstore.Config {
	return s.configs.Get(kind, name, namespace)
}

// Status returns the wanted status of an object, or nil if its status must not be changed.
func (s *Snapshot) Status(of ObjectKey) Status {
	status, _ := s.statuses.Get(of)
	return status
}

// Statuses yields all statuses, in unspecified order.
func (s *Snapshot) Statuses() iter.Seq2[ObjectKey, Status] { return s.statuses.All() }
