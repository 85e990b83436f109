// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
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

// TestClosedPolicyTwice: a policy that a response has twice, with different content, is closed, too, and
// follows the server afterwards.
func TestClosedPolicyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.AuthorizationPolicy))
		defer end()
		d.open(1)
		policy := func(rules ...*security.Rule) *anypb.Any {
			body := pack(t, &security.AuthorizationPolicy{Rules: rules})
			return pack(t, &mcp.Resource{Metadata: &mcp.Metadata{Name: "ns/twice"}, Body: body})
		}
		send := func(version string, resources ...*anypb.Any) *configstore.Config {
			d.send(typeURL(istio.AuthorizationPolicy), version, resources...)
			<-d.requests
			synctest.Wait()
			return store.Get(istio.AuthorizationPolicy, "twice", "ns")
		}
		if c := send("1", policy(), policy(&security.Rule{})); c == nil || len(configstore.Unread(c.Spec)) == 0 {
			t.Errorf("of two policies of one name the store has %v", c)
		}
		if errs := source.Report().Errors; len(errs) != 1 || !errors.Is(errs[0], ErrDuplicate) {
			t.Errorf("report %v", errs)
		}
		if c := send("2", policy(&security.Rule{})); c == nil || len(configstore.Unread(c.Spec)) > 0 || len(source.Report().Errors) > 0 {
			t.Errorf("afterwards the store has %v, the report %v", c, source.Report().Errors)
		}
	})
}
