// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	networking "istio.io/api/networking/v1alpha3"
)

// TestJoinedExclusions: a delegate excludes at least what its root excludes.
func TestJoinedExclusions(t *testing.T) {
	t.Parallel()
	exact := &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: "one"}}
	prefix := &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "o"}}
	other := &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: "t"}}
	without := func(m *networking.StringMatch) *networking.HTTPMatchRequest {
		if m == nil {
			return &networking.HTTPMatchRequest{}
		}
		return &networking.HTTPMatchRequest{WithoutHeaders: map[string]*networking.StringMatch{"x": m}}
	}
	for _, tc := range []struct{ root, delegate, want *networking.StringMatch }{
		{prefix, exact, prefix},
		{exact, prefix, prefix},
		{exact, exact, exact},
		{prefix, nil, prefix},
		{nil, exact, exact},
		{exact, other, nil}, // their intersection is not one match
	} {
		matches, ok := joinMatches([]*networking.HTTPMatchRequest{without(tc.root)}, []*networking.HTTPMatchRequest{without(tc.delegate)})
		if ok != (tc.want != nil) {
			t.Errorf("%v and %v can be joined: %t", tc.root, tc.delegate, ok)
			continue
		}
		if ok {
			if diff := cmp.Diff([]*networking.HTTPMatchRequest{without(tc.want)}, matches, protocmp.Transform()); diff != "" {
				t.Errorf("%v and %v (-want +got):\n%s", tc.root, tc.delegate, diff)
			}
		}
	}
}
