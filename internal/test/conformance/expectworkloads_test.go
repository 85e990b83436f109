// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore/istio"
)

// accepted returns a WorkloadEntry that reached the store, or nil.
func accepted(doc document, refused string) *document {
	if refused != "" || doc.config.GroupVersionKind != istio.WorkloadEntry {
		return nil
	}
	return &doc
}

// notifyWorkloads follows the recorded notifications of workload handlers for a document, and adds
// the missing ones.
func (x *expectation) notifyWorkloads(e *expected, registry string, doc int, entry *document) {
	for i, c := range e.WorkloadHandlerCalls {
		if c.Doc != doc || c.Handler != registry {
			continue
		}
		k := workloadKeyOf(registry, c.Namespace, c.Name)
		last, known := x.notified[k]
		if c.Event == eventDelete {
			delete(x.notified, k)
			continue
		}
		x.notified[k] = c
		if c.Event == eventUpdate {
			e.WorkloadHandlerCalls = slices.Clone(e.WorkloadHandlerCalls)
			e.WorkloadHandlerCalls[i].Event = row1BackToIP(known)
			x.row3NewAddress(e, registry, last.Endpoint, c.Endpoint)
		}
	}
	if entry != nil {
		x.row1GoneFromIP(e, registry, doc, *entry)
	}
}

// row1BackToIP: handlers that were not notified of a workload get an add.
func row1BackToIP(known bool) string {
	if known {
		return eventUpdate
	}
	return eventAdd
}

// row1GoneFromIP: when the address of a WorkloadEntry became a host name or a unix
// socket, handlers were not notified. Ours get a delete with the last state.
func (x *expectation) row1GoneFromIP(e *expected, registry string, doc int, entry document) {
	k := workloadKeyOf(registry, entry.ref.Namespace, entry.ref.Name)
	last, known := x.notified[k]
	spec, ok := entry.config.Spec.(*networking.WorkloadEntry)
	if !known || !ok || spec.GetAddress() == "" || row3OnlyIPs(spec.GetAddress()) {
		return
	}
	delete(x.notified, k)
	last.Doc, last.Event = doc, eventDelete
	e.WorkloadHandlerCalls = append(slices.Clone(e.WorkloadHandlerCalls), last)
}

// row3NewAddress: no proxy was pushed when a WorkloadEntry's address changed. Ours
// pushes the one at the new address.
func (x *expectation) row3NewAddress(e *expected, registry string, last, curr endpoint) {
	from, to := firstAddress(last), firstAddress(curr)
	if from != to && row3OnlyIPs(to) {
		e.proxyUpdates[proxyName(x.cluster(registry), to)] = true
	}
}

func (x *expectation) cluster(registry string) string {
	for _, r := range x.scenario.Registries {
		if r.ID == registry {
			return r.Cluster
		}
	}
	return x.scenario.Options.ClusterID
}

func firstAddress(e endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

func workloadKeyOf(registry, namespace, name string) string {
	return registry + "|" + namespace + "/" + name
}
