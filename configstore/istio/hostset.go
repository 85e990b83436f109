// SPDX-License-Identifier: Apache-2.0

package istio

// hostSet answers which of many hosts stands for a given one.
type hostSet struct {
	exact map[string]bool
	// wild holds the suffixes after the "*" of the wildcards, lengths the lengths of these suffixes
	// in bytes, because a host is looked up at these lengths only.
	wild    map[string]bool
	lengths [maxDomainLength + 1]bool
}

// newHostSet returns the set of hosts. Wildcards that are too long for a domain name
// cover nothing.
func newHostSet(hosts []string) *hostSet {
	s := &hostSet{exact: make(map[string]bool, len(hosts)), wild: map[string]bool{}}
	for _, host := range hosts {
		s.exact[host] = true
		if isWildcarded(host) && len(host) <= maxDomainLength {
			s.wild[host[1:]] = true
			s.lengths[len(host)-1] = true
		}
	}
	return s
}

// covers reports whether a host of the set is the given one or a wildcard that includes it. A
// wildcard includes all hosts with the suffix after its "*": "*.example.com" includes
// "a.example.com" and "*.a.example.com", but not "example.com", while "*example.com" includes all
// three.
func (s *hostSet) covers(host string) bool {
	if s.exact[host] {
		return true
	}
	_, ok := s.cover(host)
	return ok
}

// cover returns a wildcard of the set, other than the host itself, that includes the host. A host
// that is too long for a domain name is not covered.
func (s *hostSet) cover(host string) (wildcard string, ok bool) {
	first := 0
	if isWildcarded(host) {
		// Something stands in for the "*" that is not just the host's own.
		first = 2
	}
	if len(host) > maxDomainLength {
		return "", false
	}
	for i := first; i <= len(host); i++ {
		if s.lengths[len(host)-i] && s.wild[host[i:]] {
			return "*" + host[i:], true
		}
	}
	return "", false
}
