// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import "github.com/pilotkit/pilotkit/registry"

// matcher decides whether endpoints are the same to proxies, which means Equal and with the same
// first address. It remembers the last equal attributes, because most endpoints of a list share
// theirs. The zero value is ready.
type matcher struct{ a, b *registry.EndpointAttributes }

// unchanged reports whether proxies see no difference between two endpoints.
func (m *matcher) unchanged(e, f *registry.Endpoint) bool {
	switch {
	case e == f:
		return true
	case len(e.Addresses) != 1 || len(f.Addresses) != 1:
		return e.Address() == f.Address() && e.Equal(f)
	default:
		return e.Addresses[0] == f.Addresses[0] &&
			e.EndpointPort == f.EndpointPort && e.ServicePort == f.ServicePort &&
			e.HealthStatus == f.HealthStatus && e.ServicePortName == f.ServicePortName &&
			e.WorkloadName == f.WorkloadName &&
			(e.Shared == f.Shared || m.equal(e.Attributes(), f.Attributes()))
	}
}

func (m *matcher) equal(a, b *registry.EndpointAttributes) bool {
	if m.a != a || m.b != b {
		if !a.Equal(b) {
			return false
		}
		m.a, m.b = a, b
	}
	return true
}

// run returns how many endpoints at the beginning of two lists are unchanged, and
// whether they are even the very same.
func (m *matcher) run(a, b []*registry.Endpoint) (n int, same bool) {
	a, b = a[:min(len(a), len(b))], b[:min(len(a), len(b))]
	same = true
	for ; n < len(a); n++ {
		if a[n] != b[n] {
			if !m.unchanged(a[n], b[n]) {
				break
			}
			same = false
		}
	}
	return n, same
}

func identical(e, f *registry.Endpoint) bool { return e == f }
