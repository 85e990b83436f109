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

// building is a provider that builds every resource of customType by a function of the test.
type building struct {
	making
	answered
	build func() (proto.Message, error)
}

func (b building) Provide(*ads.PushContext) (ads.Provided, ads.Changes) { return b, ads.Changes{} }

func (b building) Lookup(_ ads.View, typeURL, _ string) ads.Answer {
	return ads.Answer{Next: typeURL != customType, Build: b.build}
}

// TestBuildWithoutLocks: no lock is held while a resource is built, also for a client that
// subscribes to more names on a stream that has some. A source that is slow would stop the whole
// server.
func TestBuildWithoutLocks(t *testing.T) {
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
	f = serve(t, ads.Options{Providers: []ads.Provider{building{build: build}}})
	c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		f.subscribe(c, customType, names[len(names)-1])
		f.await(c, customType, names...)
	}
	if locked.Load() {
		t.Error("a resource was built with a lock held")
	}
}
