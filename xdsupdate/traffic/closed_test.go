// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// TestClosedPoliciesAreSaid: policies that are closed, of the first push or of a later one, are
// findings of Closed and of Ineffective, and are logged once.
func TestClosedPoliciesAreSaid(t *testing.T) {
	t.Parallel()
	const unread = `{later: 1}`
	var log bytes.Buffer // written by pushes only
	first := objectsOf(t, `Gateway ingress/edge {"selector": {"app": "edge"}, "servers": [{"hosts": ["*"], "port": {"number": 80, "name": "http", "protocol": "HTTP"}}]}`)
	config := unreadable(t, "AuthorizationPolicy", `{rules: text}`)
	first.add(config.GroupVersionKind, "ingress/first", config.Spec)
	s := stage(t, traffic.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, first, populate())
	want := []string{"AuthorizationPolicy ingress/first: spec: the policy allows nothing, because the field cannot be read: reason"}
	for _, kind := range []string{"AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"} {
		c := unreadable(t, kind, unread)
		c.Name = "later"
		_, err := configstore.Upsert(s.store, c)
		s.must(err)
		s.applied()
	}
	want = append(want,
		"AuthorizationPolicy ingress/later: spec.later: the policy allows nothing, because the field is not known",
		"PeerAuthentication ingress/later: spec.later: servers take mutual TLS, and nothing else, because the field is not known",
		"RequestAuthentication ingress/later: spec.later: all requests are denied, because the field is not known")
	if diff := cmp.Diff(want, texts(s.policies.Closed())); diff != "" {
		t.Errorf("Closed (-want +got):\n%s", diff)
	}
	all := strings.Join(texts(s.policies.Ineffective()), "\n")
	for _, text := range want {
		if !strings.Contains(all, text) {
			t.Errorf("Ineffective does not say %q", text)
		}
	}
	for _, name := range []string{"first", "later"} {
		s.must(s.store.Delete(config.GroupVersionKind, name, "ingress", nil))
	}
	s.applied()
	if got := texts(s.policies.Closed()); len(got) != 2 {
		t.Errorf("two policies are deleted, and there are %q", got)
	}
	s.close()
	for _, text := range want {
		if n := strings.Count(log.String(), fmt.Sprintf(`msg="policy is closed" finding=%q`, text)); n != 1 {
			t.Errorf("%q is logged %d times: %s", text, n, log.String())
		}
	}
}

func texts(found []traffic.Ineffective) (out []string) {
	for _, f := range found {
		out = append(out, f.String())
	}
	return out
}
