// SPDX-License-Identifier: Apache-2.0

package secrets_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestAccess: for any secrets and any subscriptions, proxies get exactly the secrets of their own
// namespace and those that the host allows.
func TestAccess(t *testing.T) {
	namespaces := []string{"a", "b", "c"}
	credentials := []string{"x", "y"}
	for _, seed := range histories.Seeds(t, 20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			all := make(map[secrets.Name]*secrets.Secret)
			allowed := make(map[string]bool)
			for _, ns := range namespaces {
				for _, name := range append([]string{"default", "ROOTCA", "own"}, "kubernetes://x", "kubernetes://y", "kubernetes://y-cacert") {
					if random.IntN(3) > 0 {
						all[secrets.Name{Namespace: ns, Name: name}] = issue(t, ns)
					}
				}
				for _, other := range namespaces {
					allowed[ns+other] = random.IntN(2) == 0
				}
			}
			var names []string
			for _, c := range credentials {
				names = append(names, "kubernetes://"+c, "kubernetes://"+c+"-cacert")
				for _, ns := range namespaces {
					names = append(names, "kubernetes://"+ns+"/"+c, "kubernetes://"+ns+"/"+c+"-cacert")
				}
			}
			names = append(names, "default", "ROOTCA", "own", "kubernetes:///x", "kubernetes://a/b/x", "kubernetes://a/", "file-cert:x", "../x")
			p := serve(t, secrets.Options{
				Names: names,
				Function: func(n secrets.Name) (*secrets.Secret, error) {
					if s := all[n]; s != nil {
						return s, nil
					}
					return nil, secrets.ErrNotFound
				},
				Allow: func(namespace string, of secrets.Name) bool { return allowed[namespace+of.Namespace] },
			})
			may := func(namespace, of string) bool { return namespace == of || allowed[namespace+of] }
			clients := make(map[string]*xdstest.Client)
			for _, ns := range namespaces {
				clients[ns] = p.client(ns)
				p.subscribe(clients[ns], names...)
			}
			compare := func() {
				t.Helper()
				for _, ns := range namespaces {
					have := held(t, clients[ns])
					for _, name := range names {
						want, roots := direct(all, ns, name, may)
						switch got := have[name]; {
						case want == nil:
							if got != nil {
								t.Errorf("a proxy of %s has %s", ns, name)
							}
						case roots && !isAuthorities(got, want) || !roots && !isPair(got, want):
							t.Errorf("a proxy of %s does not have %s as it is", ns, name)
						}
					}
				}
			}
			compare()
			for range 3 { // a change is sent to the proxies that may have the secret
				for n := range all {
					if random.IntN(3) == 0 {
						all[n] = issue(t, "new")
					} else if random.IntN(5) == 0 {
						delete(all, n)
					}
				}
				p.provider.Refresh()
				p.applied()
				compare()
			}
		})
	}
}

// direct interprets a name for a proxy of a namespace; roots: the authorities of
// the secret are meant.
func direct(all map[secrets.Name]*secrets.Secret, namespace, name string, may func(namespace, of string) bool) (s *secrets.Secret, roots bool) {
	rest, ok := strings.CutPrefix(name, "kubernetes://")
	if !ok {
		return all[secrets.Name{Namespace: namespace, Name: name}], name == "ROOTCA"
	}
	of := namespace
	if i := strings.Index(rest, "/"); i >= 0 {
		of, rest = rest[:i], rest[i+1:]
	}
	if !may(namespace, of) {
		return nil, false
	}
	base, roots := strings.CutSuffix(rest, "-cacert")
	if s := all[secrets.Name{Namespace: of, Name: "kubernetes://" + rest}]; s != nil || !roots {
		return s, roots
	}
	return all[secrets.Name{Namespace: of, Name: "kubernetes://" + base}], true
}
