// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/etcd"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestClosedPolicies: a policy that others have written and that cannot be read, or not all of it,
// is closed in a replica that starts then, and the log says so. No replica stores one of which
// something would be lost.
func TestClosedPolicies(t *testing.T) {
	srv, prefix := shared.get(t)
	client := newClient(t, srv.addr)
	head := "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {namespace: ns, name: "
	values := map[string]string{
		"deep": head + "deep}\nspec: {selector: {matchLabels: {app: web}}, rules: [{from: [{source: {later: [a]}}]}]}", "top": head + "top}\nspec: {later: 1, rules: [{}]}",
		"action": head + "action}\nspec: {action: LATER, rules: [{}]}", "other": head + "another}\nspec: {rules: [{}]}", "text": "{", "empty": "",
	}
	for name, value := range values {
		put(t, client, prefix+"/security.istio.io/AuthorizationPolicy/ns/"+name, value)
	}
	const sidecars = "/networking.istio.io/Sidecar/ns/"
	put(t, client, prefix+sidecars+"lost", "{")
	put(t, client, prefix+sidecars+"kept", "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {namespace: ns, name: kept}\nspec: {egress: [{hosts: ['./*']}]}")
	var log logged
	r := start(t, srv.addr, etcd.Options{Prefix: prefix, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r.Drain()
	for name := range values {
		c := r.Get(istio.AuthorizationPolicy, name, "ns")
		if !configstore.IsPlaceholder(c) {
			t.Errorf("%s is %v", name, c)
			continue
		}
		again := configstore.Config{Meta: c.Meta, Spec: c.Spec}
		again.Name, again.ResourceVersion = "again", ""
		if _, err := r.Create(again); err == nil {
			t.Errorf("%s is stored without what could not be read", name)
		}
	}
	if got := len(r.Errors()); got != len(values)+1 {
		t.Errorf("%d errors: %v", got, r.Errors())
	}
	put(t, client, prefix+sidecars+"kept", "{")
	for name, instead := range map[string]string{
		"AuthorizationPolicy/ns/text": "a policy that is closed", "Sidecar/ns/lost": "nothing", "Sidecar/ns/kept": "its last good state",
	} {
		eventually(t, "the log of "+name, func() bool { return log.says(name+" ", "in_effect="+instead, `in_effect="`+instead+`"`) })
	}
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// says reports whether a line has the first text and one of the others.
func (l *logged) says(text string, oneOf ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) && slices.ContainsFunc(oneOf, func(s string) bool { return strings.Contains(line, s) }) {
			return true
		}
	}
	return false
}
