// SPDX-License-Identifier: Apache-2.0

package serviceentry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pilotkit/pilotkit/registry"
)

// workload is one that entries may select: of a WorkloadEntry or of another
// registry. All but the links and members is immutable.
type workload struct {
	instance *registry.WorkloadInstance
	// base is the endpoint of the instance; its address has no scheme.
	base *registry.Endpoint
	unix bool
	// foreign: another registry announced it.
	foreign bool

	group          *group
	previous, next *workload
	// members holds one for each entry that selects the workload.
	members []*member
}

// newWorkload returns the workload of a WorkloadEntry.
func newWorkload(w *registry.WorkloadInstance, unix bool) *workload {
	return &workload{instance: w, base: w.Endpoint, unix: unix}
}

// foreignWorkload returns that of a workload of another registry.
func (c *conversion) foreignWorkload(w *registry.WorkloadInstance) *workload {
	base, unix := c.foreignBase(w)
	return &workload{instance: w, base: base, unix: unix, foreign: true}
}

// foreignBase returns the endpoint of a workload of another registry, and whether
// its address is a unix socket. As in Istio 1.30 the endpoint has the name and the
// namespace of the workload if it has none of its own.
func (c *conversion) foreignBase(w *registry.WorkloadInstance) (base *registry.Endpoint, unix bool) {
	e := *w.Endpoint
	unix = isUnix(e.Address())
	if unix {
		e.Addresses = slices.Clone(e.Addresses)
		e.Addresses[0] = strings.TrimPrefix(e.Addresses[0], unixScheme)
	}
	if e.WorkloadName == "" {
		e.WorkloadName = w.Name
	}
	attributes := *e.Attributes()
	if attributes.Namespace == "" {
		attributes.Namespace = w.Namespace
	}
	e.Shared = c.shared(attributes)
	return &e, unix
}

// compare orders workloads by kind, namespace, name and cluster, pods first. Nil,
// for an endpoint that is written in an entry, is last.
func (w *workload) compare(x *workload) int {
	if w == x {
		return 0
	}
	if w == nil {
		return 1
	}
	if x == nil {
		return -1
	}
	a, b := w.instance, x.instance
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name),
		strings.Compare(string(a.Cluster), string(b.Cluster)),
	)
}

// isPod reports whether proxies of the workload are told of changes by
// ProxyUpdates for its instances.
func (w *workload) isPod() bool { return w.foreign && w.instance.Kind == registry.Pod }
