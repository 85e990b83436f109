// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"slices"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"
	security "istio.io/api/security/v1beta1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// TestClosedPolicies: a policy of which a server sends more than this process knows, at any depth,
// or what is no policy, is closed in a source that has no good state of it.
func TestClosedPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, _, end := drive(t, store, only(istio.AuthorizationPolicy))
		defer end()
		d.open(1)
		deep := &security.Source{Namespaces: []string{"a"}}
		later := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
		deep.ProtoReflect().SetUnknown(later)
		newer := pack(t, &security.AuthorizationPolicy{Rules: []*security.Rule{{From: []*security.Rule_From{{Source: deep}}}}})
		good := pack(t, &security.AuthorizationPolicy{Rules: []*security.Rule{{}}})
		var sent []*anypb.Any
		for name, body := range map[string]*anypb.Any{
			"newer": newer, "top": {TypeUrl: good.GetTypeUrl(), Value: slices.Concat(good.GetValue(), later)},
			"action":    pack(t, &security.AuthorizationPolicy{Action: 77, Rules: []*security.Rule{{}}}),
			"truncated": {TypeUrl: good.GetTypeUrl(), Value: good.GetValue()[:len(good.GetValue())-1]}, "nothing": nil,
		} {
			sent = append(sent, pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "ns/" + name}, Body: body}))
		}
		d.send(typeURL(istio.AuthorizationPolicy), "1", sent...)
		<-d.requests
		synctest.Wait()
		for _, name := range []string{"newer", "top", "action", "truncated", "nothing"} {
			if c := store.Get(istio.AuthorizationPolicy, name, "ns"); c == nil || len(configstore.Unread(c.Spec)) == 0 {
				t.Errorf("%s is %v", name, c)
			}
		}
	})
}
