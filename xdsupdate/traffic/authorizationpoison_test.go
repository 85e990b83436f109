// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/routesim"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// poisonedPolicies are policies that together have all fields; each denies most calls.
var poisonedPolicies = []string{
	`{"action": "DENY", "selector": {"matchLabels": {"app": "edge"}}, "rules": [
		{"from": [{"source": {"notPrincipals": ["td1/ns/shop/sa/web"], "notNamespaces": ["bill"]}}], "to": [{"operation": {"paths": ["/a*"], "ports": ["80"]}}]},
		{"to": [{"operation": {"hosts": ["b.example.com"], "methods": ["PUT"]}}], "when": [{"key": "source.ip", "values": ["10.0.0.0/8"]}]}]}`,
	`{"action": "DENY", "rules": [
		{"from": [{"source": {"ipBlocks": ["10.0.0.1"]}}, {"source": {"remoteIpBlocks": ["10.0.0.0/24"]}}], "to": [{"operation": {"notPaths": ["/b", "/a/{*}"]}}]},
		{"when": [{"key": "request.headers[x-name]", "values": ["one"]}]}]}`,
	`{"rules": [{"from": [{"source": {"principals": ["td1/ns/shop/sa/web"]}}], "to": [{"operation": {"methods": ["GET"], "notPaths": ["/a/{**}"], "notPorts": ["9000"]}}]},
		{"from": [{"source": {"serviceAccounts": ["bill/job"], "notIpBlocks": ["10.0.0.0/8"]}}], "when": [{"key": "request.headers[x-name]", "notValues": ["two"]}]}]}`,
	`{"rules": [{"from": [{"source": {"trustDomains": ["td1"], "notServiceAccounts": ["shop/web"]}}]},
		{"from": [{"source": {"requestPrincipals": ["iss1/alice"], "notRequestPrincipals": ["iss2/*"]}}], "to": [{"operation": {"notHosts": ["b.example.com"], "notMethods": ["PUT"]}}]}]}`,
	`{"action": "CUSTOM", "provider": {"name": "nobody"}, "rules": [{"to": [{"operation": {"paths": ["/a*"]}}], "when": [{"key": "destination.port", "values": ["80"]}]}]}`,
	`{"action": "CUSTOM", "provider": {"name": "grpc"}, "rules": [{"from": [{"source": {"notIpBlocks": ["8.8.8.8"]}}], "to": [{"operation": {"notPaths": ["/b"]}}]}]}`,
	`{"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g1"}], "action": "DENY", "rules": [{"to": [{"operation": {"paths": ["/a*"]}}]}]}`,
}

// possible are the values among the poison that something can have: a policy with them is another one, and no spoilt one.
var possible = regexp.MustCompile(`(labels(.key.|.key.)|service_accounts.0.|trust_domains.0.|targetRefs?.0?.?.?name) = "1.2.3.4.5"|labels.key. = ""`)

// mutant is a policy of which one field is poisoned.
type mutant struct {
	base    int
	where   string
	config  *configstore.Config
	refusal error
	warned  bool
}

// mutants are those of all policies, each in a namespace of its own.
func mutants(tb testing.TB) (out []mutant) {
	tb.Helper()
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	var list configList
	for i, text := range poisonedPolicies {
		base := spec(tb, text, &security.AuthorizationPolicy{})
		for where, m := range poisoned(base, tier.Full()) {
			if possible.MatchString(where) {
				continue
			}
			out = append(out, mutant{base: i, where: where})
			list.add(istio.AuthorizationPolicy, fmt.Sprintf("n%d/p", len(out)), m)
		}
	}
	for i := range out {
		m := &out[i]
		m.config = list[i]
		whole := *m.config
		whole.Spec = spec(tb, poisonedPolicies[m.base], &security.AuthorizationPolicy{})
		usual, _ := schema.Check(whole)
		warnings, err := schema.Check(*m.config)
		m.refusal, m.warned = err, slices.ContainsFunc(warnings, func(v configstore.Violation) bool { return !slices.Contains(usual, v) })
	}
	return out
}

// TestPoisonedPolicies: no policy with one field spoilt lets in what the whole one keeps out, unless validation refuses it or
// warns of it, or it is reported.
func TestPoisonedPolicies(t *testing.T) {
	t.Parallel()
	all := mutants(t)
	d := policyDice{rand.New(rand.NewPCG(1, 26))}
	var calls []routesim.Call
	for i := range 120 {
		calls = append(calls, d.call(i%4 == 0))
	}
	var bases configList
	for i, text := range poisonedPolicies {
		bases.add(istio.AuthorizationPolicy, fmt.Sprintf("whole%d/p", i), spec(t, text, &security.AuthorizationPolicy{}))
	}
	refused, wider := 0, 0
	const at = 200
	for first := 0; first < len(all); first += at {
		some := all[first:min(first+at, len(all))]
		list := slices.Clone(bases)
		for _, m := range some {
			if _, err := proto.Marshal(m.config.Spec); err == nil {
				list = append(list, m.config)
			}
		}
		s := guardedScene(t, traffic.Options{Mesh: authorizationMesh()}, lenientSchemas(), list)
		reported := s.reportedBeyond(bases)
		for _, m := range some {
			if m.refusal != nil {
				refused++
			}
			who := routesim.Proxy{Namespace: m.config.Namespace, Labels: map[string]string{"app": "edge", "gateway.networking.k8s.io/gateway-name": "g1"}}
			if _, err := proto.Marshal(m.config.Spec); err != nil {
				continue
			}
			var base configList
			base.add(istio.AuthorizationPolicy, m.config.Namespace+"/p", spec(t, poisonedPolicies[m.base], &security.AuthorizationPolicy{}))
			read, g := readPolicies(base, false), s.gates(clientOf("router", who))
			for _, c := range calls {
				if read.Decide(who, c).Admitted || !g.decide(t, c).Admitted {
					continue
				}
				wider++
				if m.refusal == nil && !m.warned && !reported[m.config.Namespace] {
					t.Errorf("policy %d, %s: lets in %+v %+v", m.base, m.where, c, c.Request)
				} else if !reported[m.config.Namespace] {
					t.Logf("policy %d, %s: unreported %v", m.base, m.where, m.refusal)
				}
				break
			}
		}
		s.close()
	}
	t.Logf("%d policies, of which %d are refused, and %d would let in more", len(all), refused, wider)
}

// reportedBeyond are the namespaces with a policy of which more has no effect than of whole ones.
func (s *scene) reportedBeyond(whole configList) map[string]bool {
	known, out := map[string]bool{}, map[string]bool{}
	for i := range whole {
		for _, e := range s.policies.Ineffective() {
			if e.Namespace == whole[i].Namespace {
				known[e.Field+": "+e.Reason] = true
			}
		}
	}
	for _, e := range s.policies.Ineffective() {
		if !known[e.Field+": "+e.Reason] {
			out[e.Namespace] = true
		}
	}
	return out
}

// spoiltRules are rules that are not whole: with nulls, with nothing in what has to say something, with fields of another
// version of the API, with values of other types, in great numbers.
func spoiltRules() []string {
	many := strings.Repeat(`"/b", `, 20_000)
	return []string{
		`null`, `[null]`, `[{}, null]`, `[{"from": [null]}]`, `[{"from": [{}]}]`, `[{"from": [{"source": null}]}]`, `[{"from": [{"source": {}}]}]`,
		`[{"to": [null]}]`, `[{"to": [{}]}]`, `[{"to": [{"operation": null}]}]`, `[{"to": [{"operation": {}}]}]`, `[{"to": [{"operation": {"paths": null}}]}]`,
		`[{"to": [{"operation": {"paths": [null]}}]}]`, `[{"to": [{"operation": {"paths": [""]}}]}]`, `[{"to": [{"operation": {"path": ["/a"]}}]}]`,
		`[{"to": [{"operation": {"paths": "/a"}}]}]`, `[{"to": [{"operation": {"ports": [80]}}]}]`, `[{"when": [null]}]`, `[{"when": [{}]}]`,
		`[{"when": [{"key": "request.headers[a]"}]}]`, `[{"when": [{"values": ["a"]}]}]`, `[{"when": [{"key": "request.newer", "values": ["a"]}]}]`,
		`[{"newer": true}]`, `[{"from": [{"source": {"newer": ["a"]}}]}]`, `[{"from": [{"source": {"ipBlocks": ["10.0.0.0/33"]}}]}]`, `"all"`, `{}`,
		`[{"to": [{"operation": {"paths": [` + many + `"/"]}}]}]`, `[{"to": [{"operation": {"paths": ["/` + strings.Repeat("a", 100_000) + `"]}}]}]`,
	}
}

// TestSpoiltDocuments: a document that is no whole policy is refused, and what was there stays in force; or it is what it says.
func TestSpoiltDocuments(t *testing.T) {
	t.Parallel()
	const base = `{"action": "%s", "rules": [{"to": [{"operation": {"%s": ["/a*"], "ports": ["80"]}}]}]}`
	for action, field := range map[string]string{"DENY": "paths", "ALLOW": "notPaths"} {
		objects := objectsOf(t, fmt.Sprintf("AuthorizationPolicy n1/p "+base, action, field))
		s := guardedScene(t, traffic.Options{}, istio.Schemas(), objects)
		who := clientOf("router", routesim.Proxy{Namespace: "n1", Labels: map[string]string{"app": "edge"}})
		d := policyDice{rand.New(rand.NewPCG(2, 26))}
		for _, rules := range spoiltRules() {
			document := fmt.Sprintf(`{"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": {"name": "p", "namespace": "n1"}, "spec": {"action": %q, "rules": %s}}`, action, rules)
			err := manifest.Apply(s.store, []byte(document), manifest.Options{})
			s.applied()
			read, g := readPolicies(objects, false), s.gates(who)
			if err == nil {
				read = readPolicies(configList{s.store.Get(istio.AuthorizationPolicy, "p", "n1")}, false)
			}
			for i := range 60 {
				c := d.call(i%4 == 0)
				want := read.Decide(routesim.Proxy{Namespace: "n1", Labels: map[string]string{"app": "edge"}}, c)
				if got := g.decide(t, c); got.Admitted && !want.Admitted {
					t.Errorf("%s with rules %.80s, %v: lets in %+v %+v", action, rules, err, c, c.Request)
				}
			}
			if err == nil {
				s.change(objects)
				if !strings.Contains(rules, "/b") && !strings.Contains(rules, "/aaaa") && (action == "DENY" || rules != "null" && rules != `{}`) {
					t.Errorf("%s with rules %.80s is taken", action, rules)
				}
			}
		}
		s.close()
	}
}

// TestActionsOfNewerAPIs: where nothing is validated, a policy with an action that is not known denies everything, and it is said.
func TestActionsOfNewerAPIs(t *testing.T) {
	t.Parallel()
	var list configList
	list.add(istio.AuthorizationPolicy, "n1/p", &security.AuthorizationPolicy{Action: 99, Rules: []*security.Rule{{To: []*security.Rule_To{
		{Operation: &security.Operation{Paths: []string{"/nothing"}}},
	}}}})
	s := guardedScene(t, traffic.Options{}, lenientSchemas(), list)
	g := s.gates(clientOf("router", routesim.Proxy{Namespace: "n1", Labels: map[string]string{"app": "edge"}}))
	d := policyDice{rand.New(rand.NewPCG(3, 26))}
	for _, connection := range []bool{false, true} {
		if g.decide(t, d.call(connection)).Admitted {
			t.Errorf("it lets calls in, connections %t", connection)
		}
	}
	if list := s.ineffective(); !slices.ContainsFunc(list, func(e string) bool {
		return strings.Contains(e, "spec.action") && strings.Contains(e, "denies everything")
	}) {
		t.Errorf("reported: %q", list)
	}
}
