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

// newWorkload returns the workload of an instance. unix: its address is the path
// of a socket.
func newWorkload(w *registry.WorkloadInstance, unix, foreign bool) *workload {
	out := &workload{instance: w, base: w.Endpoint, unix: unix, foreign: foreign}
	if a := w.Endpoint.Address(); isUnix(a) {
		base := *w.Endpoint
		base.Addresses = slices.Clone(base.Addresses)
		base.Addresses[0] = strings.TrimPrefix(a, unixScheme)
		out.base, out.unix = &base, true
	}
	return out
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
