// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"errors"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// unreadable is an object as it is read leniently, or, if that fails, its placeholder.
func unreadable(t *testing.T, kind, spec string) configstore.Config {
	t.Helper()
	schema := schemaOf(t, kind)
	text := "apiVersion: " + schema.GroupVersionKind.APIVersion() + "\nkind: " + kind + "\nmetadata: {name: p, namespace: ingress}\nspec: " + spec
	doc := manifest.Parse(lenientSchemas(), []byte(text), manifest.Options{Lenient: true})[0]
	if doc.Err == nil {
		return doc.Config
	}
	out, ok := schema.Placeholder(doc.Config, errors.New("reason"))
	if !ok {
		t.Fatalf("no placeholder for %v", doc.Err)
	}
	return out
}

// TestUnread: what cannot be read of a policy closes what it may concern, and is said.
func TestUnread(t *testing.T) {
	t.Parallel()
	const allowsNothing, deniesAll, tokens = "not_id", `"ns[ingress]-policy[p]-rule[0]"`, "refused-ingress/p"
	for _, c := range []struct{ kind, spec, want, found string }{
		{"AuthorizationPolicy", `{rules: [{whenever: [{key: a}]}]}`, allowsNothing, "spec.rules[0].whenever: the policy allows nothing, because the field is not known"},
		{"AuthorizationPolicy", `{rules: [{from: [{source: {namespaces: [a], newField: b}}]}]}`, allowsNothing, "spec.rules[0].from[0].source.newField: the policy allows nothing"},
		{"AuthorizationPolicy", `{selector: {matchLabels: {app: other}, matchExpressions: []}, rules: [{}]}`, allowsNothing, "spec.selector.matchExpressions: the policy allows nothing"},
		{"AuthorizationPolicy", `{action: DENY, rules: [{when: [{key: source.ip, valuesNow: [a]}]}]}`, deniesAll, "spec.rules[0].when[0].valuesNow: the policy denies everything"},
		{"AuthorizationPolicy", `{action: LATER, rules: [{}]}`, deniesAll, "spec: the policy denies everything, because the field cannot be read: reason"},
		{"RequestAuthentication", `{jwtRules: [{issuer: a, newer: b}]}`, tokens, "spec.jwtRules[0].newer: all requests are denied, because the field is not known"},
		{"RequestAuthentication", `{jwtRules: text}`, tokens, "spec: all requests are denied, because the field cannot be read: reason"},
	} {
		objects := objectsOf(t, `Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`)
		config := unreadable(t, c.kind, c.spec)
		objects.add(config.GroupVersionKind, "ingress/p", config.Spec)
		s := stage(t, traffic.Options{}, objects, populate())
		l, _ := s.ask(edge(), envoy.ListenerType).resources["0.0.0.0_80"].(*listenerv3.Listener)
		if text := prototext.Format(l); !strings.Contains(text, c.want) {
			t.Errorf("%s is not closed: %s", c.spec, text)
		}
		said := false
		for _, e := range s.policies.Ineffective() {
			said = said || strings.Contains(e.String(), c.found)
		}
		if !said {
			t.Errorf("of %s is said %v", c.spec, s.policies.Ineffective())
		}
	}
}

// TestUnreadTLS: connections to a server of whose tls something is not known are closed, and no other server gets them.
func TestUnreadTLS(t *testing.T) {
	t.Parallel()
	config := unreadable(t, "Gateway", `{selector: {app: edge}, servers: [
		{hosts: [a.example.com], port: {number: 443, name: a, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c, stricter: true}},
		{hosts: ["*.example.com"], port: {number: 443, name: b, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}}]}`)
	var objects configList
	objects.add(config.GroupVersionKind, "ingress/p", config.Spec)
	s := stage(t, traffic.Options{}, objects, populate())
	answer := s.ask(edge(), envoy.ListenerType)
	l, _ := answer.resources["0.0.0.0_443"].(*listenerv3.Listener)
	if failed := answer.failed["0.0.0.0_443"]; !strings.Contains(failed, "tls.stricter is not known") {
		t.Errorf("it is reported as %q", failed)
	}
	for _, c := range l.GetFilterChains() {
		closes := strings.Contains(prototext.Format(c.GetFilters()[0]), xdsbuild.BlackHole) && c.GetTransportSocket() == nil
		if name := c.GetFilterChainMatch().GetServerNames()[0]; closes != (name == "a.example.com") {
			t.Errorf("connections to %s are closed: %t", name, closes)
		}
	}
	if len(l.GetFilterChains()) != 2 {
		t.Errorf("the listener is %v", l)
	}
}
