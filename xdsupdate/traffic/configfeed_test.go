// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// pushedKeys notes the names of the configs of pushes.
type pushedKeys struct {
	ads.NoObserver
	mu    sync.Mutex
	names []string
}

func (o *pushedKeys) Pushed(e ads.PushEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range e.Request.Keys() {
		o.names = append(o.names, key.Name)
	}
}

// TestPushOfWhatTheFirstPushListed: what was committed before the first push and is
// delivered after it is pushed, once: other providers learn of it by that.
func TestPushOfWhatTheFirstPushListed(t *testing.T) {
	store := memory.Make(istio.Schemas())
	controller := memory.NewController(store)
	var pushed pushedKeys
	server := ads.New(nil, ads.Options{Providers: []ads.Provider{traffic.New(controller)}, Observer: &pushed})
	create := func(text string) {
		t.Helper()
		for _, c := range objectsOf(t, text) {
			if _, err := store.Create(*c); err != nil {
				t.Fatal(err)
			}
		}
	}
	flush := func() {
		t.Helper()
		if err := server.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	create(`DestinationRule shop/a {"host":"a.example.com"}`)
	server.ConfigUpdate(&xdsupdate.PushRequest{Full: true, Forced: true})
	flush() // the first push; nothing was delivered yet
	controller.Drain()
	flush()
	for _, text := range []string{`DestinationRule shop/b {"host":"b.example.com"}`, `DestinationRule shop/c {"host":"c.example.com"}`} {
		create(text)
		controller.Drain()
		flush()
	}
	pushed.mu.Lock()
	defer pushed.mu.Unlock()
	if want := []string{"a", "b", "c"}; !slices.Equal(pushed.names, want) {
		t.Errorf("pushes of %q, want %q", pushed.names, want)
	}
}
