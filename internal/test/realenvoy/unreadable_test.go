// SPDX-License-Identifier: Apache-2.0

package realenvoy

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
)

// unreadablePolicies are policies with parts that cannot be read. Without these parts they would let
// everybody in.
var unreadablePolicies = map[string]string{
	"rule of a newer API":          "kind: AuthorizationPolicy\nspec: {rules: [{whenever: [{key: a}]}]}",
	"source of a newer API":        "kind: AuthorizationPolicy\nspec: {rules: [{from: [{source: {notNamespaces: [a], unlessOn: Sunday}}]}]}",
	"operation of a newer API":     "kind: AuthorizationPolicy\nspec: {rules: [{to: [{operation: {hosts: [\"*\"], queries: [a]}}]}]}",
	"action of a newer API":        "kind: AuthorizationPolicy\nspec: {action: LATER, rules: [{}]}",
	"spec that is a number":        "kind: AuthorizationPolicy\nspec: 7",
	"selector that is a number":    "kind: AuthorizationPolicy\nspec: {selector: 7, rules: [{}]}",
	"token rules that are a text":  "kind: RequestAuthentication\nspec: {jwtRules: some}",
	"token rule of a newer API":    "kind: RequestAuthentication\nspec: {jwtRules: [{issuer: a, jwks: '{\"keys\": []}', audience: b}]}",
	"authorization of a newer API": "kind: AuthorizationPolicy\nspec: {inherits: other, rules: [{}]}",
}

const policyHead = "apiVersion: security.istio.io/v1\nmetadata: {name: p, namespace: ingress}\n"

// TestUnreadablePolicies: a policy from a file that cannot be read closes the gateway, both in a process
// that starts with it and in a running one, whether files are read strictly or leniently; without the
// policy, the gateway is open.
func TestUnreadablePolicies(t *testing.T) {
	for _, lenient := range []bool{false, true} {
		t.Run("lenient="+strconv.FormatBool(lenient), func(t *testing.T) {
			port := strconv.Itoa(int(envoyproxy.FreePorts(t, 1)[0]))
			p := startPlane(t, planeOptions{mesh: withoutMeshTLS()})
			dir := t.TempDir()
			source := file.New(dir, p.Configs, file.Options{Lenient: lenient})
			write := func(text string) {
				path := filepath.Join(dir, "policy.yaml")
				if text == "" {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(path, []byte(policyHead+text), 0o600); err != nil {
					t.Fatal(err)
				}
				_ = source.Reload() // the policy cannot be read
			}
			write(unreadablePolicies["rule of a newer API"])
			p.Apply(openGate, "HTTPPORT", port)
			proxy := p.readyEdge(envoyproxy.Options{})
			ask := func() string { return statusWith(t, newTransport(t), "http://"+local(port)+"/", "") }
			proxy.Await("the gateway is closed from its start", func() bool { return ask() == "403" })
			for name, text := range unreadablePolicies {
				write("")
				proxy.Await("the gateway is open", func() bool { return ask() == "200" })
				write(text)
				proxy.Await(name+" closes the gateway", func() bool { status := ask(); return status == "401" || status == "403" })
			}
			p.Accepted()
		})
	}
}
