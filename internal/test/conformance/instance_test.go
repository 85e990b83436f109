// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	storememory "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/registrytest"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// TestServiceEntryInstance runs the suite of registries on the ServiceEntry
// registry, which is filled through a store.
func TestServiceEntryInstance(t *testing.T) {
	registrytest.TestInstance(t, func(tb testing.TB) registrytest.Subject {
		tb.Helper()
		store := storememory.NewController(storememory.Make(istio.Schemas()))
		updater := &recorder{index: xdsupdate.NewEndpointIndex()}
		w := writer{TB: tb, store: store}
		return registrytest.Subject{
			Registry: serviceentry.New(store, updater, serviceentry.Options{}),
			Set:      w.setService, Remove: w.removeService,
			SetWorkload: w.setWorkload, RemoveWorkload: w.removeWorkload,
			CatchUp: store.Drain,
		}
	})
}

// writer writes the services of the suite as configs.
type writer struct {
	testing.TB
	store *storememory.Controller
}

// put creates the object or, where it exists, updates it. To look first would
// not do: the suite sets one service from several goroutines.
func (w writer) put(c configstore.Config) {
	w.Helper()
	_, err := w.store.Create(c)
	if errors.Is(err, configstore.ErrAlreadyExists) {
		_, err = w.store.Update(c)
	}
	if err != nil {
		w.Errorf("write %s: %v", c.Key().Object(), err)
	}
}

func (w writer) delete(kind configstore.GroupVersionKind, name, namespace string) {
	w.Helper()
	if err := w.store.Delete(kind, name, namespace, nil); err != nil {
		w.Errorf("%v", err)
	}
}

// objectName makes the name of the ServiceEntry of a host name.
func objectName(hostname registry.Hostname) string { return "se-" + string(hostname) }

func (w writer) setService(s *registry.Service, endpoints []*registry.Endpoint) {
	w.Helper()
	spec := &networking.ServiceEntry{
		Hosts: []string{string(s.Hostname)}, Resolution: networking.ServiceEntry_STATIC,
		Location: networking.ServiceEntry_MESH_INTERNAL,
	}
	for _, p := range s.Ports {
		spec.Ports = append(spec.Ports, &networking.ServicePort{Name: p.Name, Number: p.Number, Protocol: string(p.Protocol)})
	}
	var addresses []string
	for _, e := range endpoints {
		i := slices.Index(addresses, e.Address())
		if i < 0 {
			i = len(addresses)
			addresses = append(addresses, e.Address())
			spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: e.Address(), Ports: map[string]uint32{}})
		}
		spec.Endpoints[i].Ports[e.ServicePortName] = e.EndpointPort
	}
	w.put(configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Name: objectName(s.Hostname), Namespace: s.Attributes.Namespace,
			CreationTimestamp: s.CreationTime,
		},
		Spec: spec,
	})
}

func (w writer) removeService(hostname registry.Hostname, namespace string) {
	w.Helper()
	w.delete(istio.ServiceEntry, objectName(hostname), namespace)
}

func (w writer) setWorkload(wi *registry.WorkloadInstance) {
	w.Helper()
	w.put(configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.WorkloadEntry, Name: wi.Name, Namespace: wi.Namespace},
		Spec: &networking.WorkloadEntry{Address: wi.Endpoint.Address(), Labels: wi.Endpoint.Attributes().Labels},
	})
}

func (w writer) removeWorkload(namespace, name string) {
	w.Helper()
	w.delete(istio.WorkloadEntry, name, namespace)
}
