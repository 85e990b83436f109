// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

const (
	host = "a.example.com"
	ns   = "default"
)

func shardOf(cluster string) xdsupdate.ShardKey {
	return xdsupdate.ShardKey{Cluster: registry.ClusterID(cluster), Provider: registry.Kubernetes}
}

// ep returns an endpoint at an address, changed by edits.
func ep(address string, edits ...func(*registry.Endpoint)) *registry.Endpoint {
	e := &registry.Endpoint{
		Addresses: []string{address}, EndpointPort: 8080, ServicePort: 80, ServicePortName: "http",
		Shared: &registry.EndpointAttributes{Namespace: ns, Labels: registry.Labels{"app": "a"}},
	}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

// shared makes an edit of the attributes.
func shared(edit func(*registry.EndpointAttributes)) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) {
		a := *e.Attributes()
		edit(&a)
		e.Shared = &a
	}
}

func account(name string) func(*registry.Endpoint) {
	return shared(func(a *registry.EndpointAttributes) { a.ServiceAccount = name })
}

func health(h registry.HealthStatus) func(*registry.Endpoint) {
	return func(e *registry.Endpoint) { e.HealthStatus = h }
}

func sendUnhealthy() func(*registry.Endpoint) {
	return shared(func(a *registry.EndpointAttributes) { a.SendUnhealthyEndpoints = true })
}

// keysOf returns the keys of all services of an index, sorted.
func keysOf(index *xdsupdate.EndpointIndex) []xdsupdate.ConfigKey {
	var keys []xdsupdate.ConfigKey
	for view := range index.All() {
		keys = append(keys, view.Key())
	}
	slices.SortFunc(keys, xdsupdate.ConfigKey.Compare)
	return keys
}

func eps(list ...*registry.Endpoint) []*registry.Endpoint { return list }

func address(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }
