// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// follower is a client that stays while things change.
type follower struct {
	*xdstest.Client
	scene   *scene
	node    *core.Node
	typeURL string
	names   []string // nil: all
	taken   int
}

// follow connects a client that is subscribed to names of a type, or without names to all
// of it, and returns when it has been answered.
func (s *scene) follow(n *core.Node, typeURL string, names ...string) *follower {
	s.t.Helper()
	f := &follower{Client: s.connect(n), scene: s, node: n, typeURL: typeURL, names: names}
	s.must(f.Subscribe(typeURL, orAll(names)...))
	s.answered(f.Client)
	f.sent()
	return f
}

// has returns what the client has by name.
func (f *follower) has() map[string]proto.Message {
	f.scene.t.Helper()
	out := make(map[string]proto.Message)
	for name, r := range f.State().Resources(f.typeURL) {
		m, err := r.Message()
		f.scene.must(err)
		out[name] = m
	}
	return out
}

// sent returns the names that were sent or removed since the last call, in their order.
func (f *follower) sent() []string {
	var out []string
	all := f.Responses()
	for _, r := range all[f.taken:] {
		out = append(append(out, r.Names()...), r.Removed...)
	}
	f.taken = len(all)
	slices.Sort(out)
	return out
}

// check demands that the client has what a client that comes now is sent.
func (f *follower) check() {
	f.scene.t.Helper()
	want := f.scene.ask(f.node, f.typeURL, f.names...).resources
	if diff := cmp.Diff(want, f.has(), protocmp.Transform()); diff != "" {
		f.scene.t.Errorf("%s has others than a new client (-new +has):\n%s", f.node.GetId(), diff)
	}
}
