// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/test/corpus"
)

const securityCorpus = "../../../testdata/conformance/security"

// recordedPolicies returns the AuthorizationPolicies of all scenarios, as ones for the server.
func recordedPolicies(t *testing.T) (out []configstore.Config) {
	t.Helper()
	names, err := corpus.Names(securityCorpus)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(securityCorpus, name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var scenario struct {
			Steps []struct {
				Apply string `yaml:"apply"`
			} `yaml:"steps"`
		}
		if err := yaml.Unmarshal(data, &scenario); err != nil {
			t.Fatal(err)
		}
		for _, step := range scenario.Steps {
			for _, doc := range manifest.Parse(istio.Schemas(), []byte(step.Apply), manifest.Options{}) {
				spec, ok := doc.Config.Spec.(*security.AuthorizationPolicy)
				if doc.Err == nil && ok {
					out = append(out, forServer(spec, len(out)))
				}
			}
		}
	}
	return out
}

// forServer returns a policy for the server, replacing its selection.
func forServer(spec *security.AuthorizationPolicy, i int) configstore.Config {
	spec = proto.CloneOf(spec)
	spec.Selector, spec.TargetRef, spec.TargetRefs = nil, nil, nil
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.AuthorizationPolicy, Namespace: "shop", Name: fmt.Sprintf("p%d", i)}, Spec: spec,
	}
}

// randomPolicy returns a policy of values that are odd, or good.
func randomPolicy(r *rand.Rand) *security.AuthorizationPolicy {
	some := func(values ...string) []string {
		var out []string
		if r.IntN(5) > 0 {
			return nil
		}
		for range 1 + r.IntN(2) {
			out = append(out, values[r.IntN(len(values))])
		}
		return out
	}
	odd := []string{"*", "a", "a*", "*a", "**", "a*b", ".", "a b", "(", "[", "\\", "{", "ä", "%2f", "spiffe://x", "a/b", "*/*", "/", "\"", "$", "^", "?", "+", "(?i)", "\t"}
	text := func() []string { return some(odd...) }
	ranges := func() []string {
		return some("10.0.0.0/8", "10.1.2.3/8", "127.0.0.1", "::1", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::/0", "0.0.0.0/0", "fe80::1/64")
	}
	keys := []string{
		"request.headers[x]", "request.headers[Host]", "request.headers[:path]", "request.headers[:method]", "request.headers[:authority]", "request.headers[:scheme]",
		"request.headers[grpc-timeout]", "request.headers[GRPC-Timeout]", "request.headers[a b]", "request.headers[te]", "request.headers[x-bin]", "source.ip", "remote.ip", "source.principal",
		"source.namespace", "source.serviceAccount", "source.trustDomain", "destination.ip", "destination.port", "connection.sni", "request.auth.principal",
		"request.auth.audiences", "request.auth.presenter", "request.auth.claims[a]", "request.auth.claims[a][b]", "experimental.envoy.filters.a.b[c]",
	}
	spec := &security.AuthorizationPolicy{Action: []security.AuthorizationPolicy_Action{0, 1, 2}[r.IntN(3)]}
	for range 1 + r.IntN(2) {
		rule := &security.Rule{}
		if r.IntN(2) == 0 {
			rule.From = []*security.Rule_From{{Source: &security.Source{
				Principals: text(), NotPrincipals: text(), Namespaces: text(), NotNamespaces: text(), IpBlocks: ranges(), NotIpBlocks: ranges(),
				RemoteIpBlocks: ranges(), RequestPrincipals: text(), TrustDomains: text(),
			}}}
		}
		if r.IntN(2) == 0 {
			rule.To = []*security.Rule_To{{Operation: &security.Operation{
				Hosts: text(), NotHosts: text(), Methods: text(), Ports: some("0", "80", "65535"), NotPorts: some("1"),
				Paths: append(text(), some("/a/{*}", "/{**}", "/a/{*}/b", "/{**}/a.b")...), NotPaths: text(),
			}}}
		}
		for range r.IntN(3) {
			c := &security.Condition{Key: keys[r.IntN(len(keys))]}
			switch c.Key {
			case "source.ip", "remote.ip", "destination.ip":
				c.Values, c.NotValues = ranges(), ranges()
			case "destination.port":
				c.Values = []string{"80"}
			default:
				c.Values, c.NotValues = text(), text()
			}
			rule.When = append(rule.When, c)
		}
		spec.Rules = append(spec.Rules, rule)
	}
	return spec
}

// TestRefusals: no policy that is accepted, of the recorded ones or of random ones, makes a server refuse its listener.
func TestRefusals(t *testing.T) {
	t.Parallel()
	recorded := recordedPolicies(t)
	eachKind(t, func(t *testing.T, k kind) {
		t.Helper()
		s := start(t, k, "", mode("STRICT"))
		s.cart.becomes(allowed, "Get")
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
		all := recorded
		for range k.random {
			all = append(all, forServer(randomPolicy(r), 0))
		}
		sent := 0
		for some := range slices.Chunk(all, 20) {
			for i, c := range some {
				c.Name = fmt.Sprintf("p%d", i)
				if s.write([]configstore.Config{c}) == nil {
					sent++
				}
			}
			s.Applied()
			if s.Accepted(); t.Failed() {
				return
			}
		}
		t.Logf("%d policies were sent", sent)
		if sent < 200 {
			t.Error("too few")
		}
		s.evil.becomes(denied, "Get")
	})
}
