// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"testing"
	"time"

	"go.uber.org/atomic"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestLazyResourcesAreBuiltWithoutLocks: also for a client that subscribes to more names
// on a stream that has some. A source that is slow would stop the whole server.
func TestLazyResourcesAreBuiltWithoutLocks(t *testing.T) {
	var f *fixture
	var locked atomic.Bool
	build := func() (proto.Message, error) {
		done := make(chan struct{})
		go func() {
			f.Proxies()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			locked.Store(true)
		}
		return wrapperspb.String("x"), nil
	}
	g := &scripted{name: "g", do: func(_ ads.View, _ *ads.PushContext, out *ads.Resources) error {
		out.SetLazy(customType, "a", build)
		out.SetLazy(customType, "b", build)
		return nil
	}}
	f = serve(t, ads.Options{Generators: []ads.Generator{g}})
	c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		f.subscribe(c, customType, names[len(names)-1])
		f.await(c, customType, names...)
	}
	if locked.Load() {
		t.Error("a resource was built with a lock held")
	}
}
