// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// TestMarshalUnread: a policy of which something cannot be read is not taken for one that can be
// read when it is written and read again: it is unread for the same reasons.
func TestMarshalUnread(t *testing.T) {
	schema, _ := istio.Schemas().Find(istio.AuthorizationPolicy)
	policies := map[string]configstore.Config{}
	for _, spec := range []string{
		"{rules: [{whenever: [a]}]}", "{rules: [{from: [{source: {newField: a}}]}]}", "{selector: {matchExpressions: []}, rules: [{}]}",
		"{later: true, action: DENY, rules: [{}]}", "{rules: [{to: [{operation: {methods: [GET], x.y: [a]}}]}]}",
	} {
		text := "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: " + spec
		configs, err := manifest.ParseAll(istio.Schemas(), []byte(text), manifest.Options{Lenient: true})
		if err != nil {
			t.Fatal(err)
		}
		policies[spec] = configs[0]
	}
	meta := configstore.Meta{GroupVersionKind: istio.AuthorizationPolicy, Name: "p", Namespace: "ns"}
	policies["an unknown action"] = configstore.Config{Meta: meta, Spec: &security.AuthorizationPolicy{Action: 77}}
	newer := &security.AuthorizationPolicy{Rules: []*security.Rule{{}}}
	newer.Rules[0].ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	policies["an unknown number"] = configstore.Config{Meta: meta, Spec: newer}
	for what, read := range map[string]proto.Message{"a placeholder for all": nil, "a placeholder": &security.AuthorizationPolicy{Action: security.AuthorizationPolicy_DENY}} {
		c, ok := schema.Placeholder(configstore.Config{Meta: meta, Spec: read}, errors.New("reason"))
		if !ok {
			t.Fatal("no placeholder")
		}
		policies[what] = c
	}
	for what, c := range policies {
		t.Run(what, func(t *testing.T) {
			for form, marshal := range map[string]func(configstore.Config) ([]byte, error){"YAML": manifest.Marshal, "JSON": manifest.MarshalJSON} {
				data, err := marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				if strict := manifest.Parse(istio.Schemas(), data, manifest.Options{})[0]; strict.Err == nil {
					t.Errorf("%s is read without an error: %s", form, data)
				}
				lenient := manifest.Parse(istio.Schemas(), data, manifest.Options{Lenient: true})[0]
				again, before := configstore.Unread(lenient.Config.Spec), configstore.Unread(c.Spec)
				if lenient.Err != nil || len(again) < len(before) || istio.SelectionUnread(again) != istio.SelectionUnread(before) ||
					istio.ActionUnread(again) != istio.ActionUnread(before) {
					t.Errorf("of %s cannot be read %v (%v), want %v: %s", form, again, lenient.Err, before, data)
				}
			}
		})
	}
}
