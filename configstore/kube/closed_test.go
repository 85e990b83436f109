// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestClosedPolicies: a policy of a newer API, with a field that is not known at any depth, or that
// cannot be read at all, is closed in a cache that starts then.
func TestClosedPolicies(t *testing.T) {
	t.Parallel()
	server := apiserver.Server(t)
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	server.ApplyCRDs(t, []byte(strings.ReplaceAll(crdOf(schema), schema.GroupVersionKind.Group, "closed.example.com")))
	schema.GroupVersionKind.Group = "closed.example.com"
	schemas := configstore.NewSchemasBuilder().MustAdd(schema).Build()
	ns := server.Namespace(t)
	resource := newLive(t, restConfig(server.Config()), schemas).resource(schema).Namespace(ns)
	// What takes its place entirely, because it cannot be read, is a placeholder.
	policies := map[string]struct {
		spec        string
		placeholder bool
	}{
		"top":    {`{"later":1,"rules":[{}]}`, false},
		"deep":   {`{"rules":[{"from":[{"source":{"namespaces":["a"],"later":["b"]}}]}]}`, false},
		"action": {`{"action":"LATER","rules":[{}]}`, true},
		"list":   {`{"rules":"all"}`, true},
		"select": {`{"selector":{"matchLabels":["app"]},"rules":[{}]}`, true},
	}
	for name, p := range policies {
		putSpec(t, resource, schema.GroupVersionKind, name, p.spec)
	}
	var log strings.Builder
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	runSynced(t, c)
	if n := strings.Count(log.String(), `"object is invalid"`); n != 3 || strings.Count(log.String(), `in_effect="a policy that is closed"`) != n {
		t.Errorf("the log is\n%s", log.String())
	}
	for name, p := range policies {
		got := c.Get(schema.GroupVersionKind, name, ns)
		if got == nil || len(configstore.Unread(got.Spec)) == 0 || configstore.IsPlaceholder(got) != p.placeholder {
			t.Errorf("%s is %v", name, got)
		}
	}
	expectErrors(t, c, "action", "list", "select")
}
