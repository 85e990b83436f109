// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/registry"
)

// expectOrder demands that compare orders any two elements as the list does, and
// that only an element is equal to itself.
func expectOrder[T any](t *testing.T, name string, compare func(a, b T) int, sorted []T) {
	t.Helper()
	for i, a := range sorted {
		for j, b := range sorted {
			if got, want := cmp.Compare(compare(a, b), 0), cmp.Compare(i, j); got != want {
				t.Errorf("%s of elements %d and %d = %d, want %d", name, i, j, got, want)
			}
		}
	}
}

func TestCompareServices(t *testing.T) {
	t.Parallel()
	service := func(hostname registry.Hostname, namespace string, created int64, object, address string) *registry.Service {
		return &registry.Service{
			Hostname: hostname, DefaultAddress: address, CreationTime: time.Unix(created, 0),
			Attributes: registry.ServiceAttributes{Namespace: namespace, ObjectName: object},
		}
	}
	expectOrder(t, "CompareServices", registry.CompareServices, []*registry.Service{
		service("a", "x", 1, "o", "1"),
		service("a", "x", 1, "o", "2"),
		service("a", "x", 1, "p", "1"),
		service("a", "x", 2, "a", "1"),
		service("a", "y", 1, "a", "1"),
		service("b", "a", 1, "a", "1"),
	})
}

// Each service loses to the one before it in one field, and wins in all that
// count less.
func TestComparePrecedence(t *testing.T) {
	t.Parallel()
	service := func(created int64, namespace, object, hostname, address, provider, name, version string, r registry.Resolution) *registry.Service {
		return &registry.Service{
			Hostname: registry.Hostname(hostname), DefaultAddress: address, CreationTime: time.Unix(created, 0),
			ResourceVersion: version, Resolution: r,
			Attributes: registry.ServiceAttributes{
				Provider: registry.ProviderID(provider), Namespace: namespace, ObjectName: object, Name: name,
			},
		}
	}
	expectOrder(t, "ComparePrecedence", registry.ComparePrecedence, []*registry.Service{
		service(1, "y", "y", "y", "y", "y", "y", "y", 1),
		service(1, "y", "y", "y", "y", "y", "y", "y", 2),
		service(1, "y", "y", "y", "y", "y", "y", "z", 0),
		service(1, "y", "y", "y", "y", "y", "z", "a", 0),
		service(1, "y", "y", "y", "y", "z", "a", "a", 0),
		service(1, "y", "y", "y", "z", "a", "a", "a", 0),
		service(1, "y", "y", "z", "a", "a", "a", "a", 0),
		service(1, "y", "z", "a", "a", "a", "a", "a", 0),
		service(1, "z", "a", "a", "a", "a", "a", "a", 0),
		service(2, "a", "a", "a", "a", "a", "a", "a", 0),
	})
}

func TestCompareWorkloads(t *testing.T) {
	t.Parallel()
	workload := func(kind registry.WorkloadKind, namespace, name, cluster string) *registry.WorkloadInstance {
		return &registry.WorkloadInstance{Kind: kind, Namespace: namespace, Name: name, Cluster: registry.ClusterID(cluster)}
	}
	expectOrder(t, "CompareWorkloads", registry.CompareWorkloads, []*registry.WorkloadInstance{
		workload(registry.Pod, "y", "y", "y"),
		workload(registry.Pod, "y", "y", "z"),
		workload(registry.Pod, "y", "z", "a"),
		workload(registry.Pod, "z", "a", "a"),
		workload(registry.WorkloadEntry, "a", "a", "a"),
	})
}

func TestCompareNetworkGateways(t *testing.T) {
	t.Parallel()
	gateway := func(network, cluster, address string, port, hbone uint32, account string) registry.NetworkGateway {
		return registry.NetworkGateway{
			Network: network, Cluster: registry.ClusterID(cluster), Addr: address,
			Port: port, HBONEPort: hbone, ServiceAccount: account,
		}
	}
	expectOrder(t, "CompareNetworkGateways", registry.CompareNetworkGateways, []registry.NetworkGateway{
		gateway("y", "y", "y", 5, 5, "y"),
		gateway("y", "y", "y", 5, 5, "z"),
		gateway("y", "y", "y", 5, 6, "a"),
		gateway("y", "y", "y", 6, 0, "a"),
		gateway("y", "y", "z", 0, 0, "a"),
		gateway("y", "z", "a", 0, 0, "a"),
		gateway("z", "a", "a", 0, 0, "a"),
	})
}
