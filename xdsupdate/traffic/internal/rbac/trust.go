// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"
)

// defaultDomain stands for the mesh's own trust domain, regardless of its name.
const defaultDomain = "cluster.local"

// Trust contains the trust domain of a mesh and its aliases.
type Trust struct {
	Domain  string
	Aliases []string
}

// domains returns all of them, the mesh's own first.
func (t Trust) domains() []string { return append([]string{t.Domain}, t.Aliases...) }

// principals returns identities "DOMAIN/ns/NAMESPACE/sa/ACCOUNT". It expands an identity of one of
// the mesh's domains to all of them. Other forms stay unchanged (S53).
func (t Trust) principals(values []string) []string {
	var out []string
	add := func(p string) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, p := range values {
		domain, path, _ := strings.Cut(p, "/")
		if strings.Count(p, "/") != 4 || domain == "*" || !t.has(domain) {
			add(p)
			continue
		}
		for _, d := range t.domains() {
			if isSuffix(domain, d) {
				add(p)
			} else {
				add(d + "/" + path)
			}
		}
	}
	return out
}

// has reports whether the domain of a principal is one of the mesh's.
func (t Trust) has(domain string) bool {
	return domain == defaultDomain || slices.Contains(t.domains(), domain) ||
		slices.ContainsFunc(t.domains(), func(d string) bool { return isSuffix(domain, d) })
}

// isSuffix reports whether a pattern "*SUFFIX" matches.
func isSuffix(pattern, s string) bool {
	suffix, ok := strings.CutPrefix(pattern, "*")
	return ok && strings.HasSuffix(s, suffix)
}

// trustDomains expands each trust domain of the mesh to all of the mesh's domains.
func (t Trust) trustDomains(values []string) []string {
	var out []string
	for _, v := range values {
		with := []string{v}
		if slices.Contains(t.domains(), v) {
			with = t.domains()
		}
		for _, d := range with {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}
