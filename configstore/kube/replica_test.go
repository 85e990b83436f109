// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// replica is the state that a handler derives from events alone. It fails the test if the events
// are inconsistent.
type replica struct {
	t       *testing.T
	mu      sync.Mutex
	objects map[string]configstore.Config
}

func (r *replica) handle(old, curr configstore.Config, event configstore.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := "limits " + curr.Namespace + "/" + curr.Name
	had, known := r.objects[key]
	switch {
	case event == configstore.EventAdd && known, event != configstore.EventAdd && !known:
		r.t.Errorf("%s of %s, which was known: %t", event, key, known)
	case event == configstore.EventUpdate && had.ResourceVersion != old.ResourceVersion:
		r.t.Errorf("update of %s from %s, known was %s", key, old.ResourceVersion, had.ResourceVersion)
	case event == configstore.EventUpdate && had.UID != curr.UID:
		r.t.Errorf("an update of %s to another object", key)
	case event == configstore.EventUpdate && had.ResourceVersion == curr.ResourceVersion:
		r.t.Errorf("an update of %s to the same version", key)
	}
	if event == configstore.EventDelete {
		delete(r.objects, key)
	} else {
		r.objects[key] = curr
	}
}

func (r *replica) state() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := map[string]string{}
	for key, c := range r.objects {
		state[key] = c.ResourceVersion
	}
	return state
}

// expectConverged waits until the API server, the cache and the replica agree.
func expectConverged(t *testing.T, l *live, c *kube.Cache, r *replica) {
	t.Helper()
	want, err := l.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		t.Error("there is nothing to agree about")
	}
	eventually(t, "the cache and its handlers have what the API server has", func() bool {
		return maps.Equal(want, shown(c)) && maps.Equal(want, r.state())
	})
}

// load writes its own objects until the returned function is called.
func load(t *testing.T, s configstore.ConfigStore, kind configstore.GroupVersionKind, namespace string) (end func()) {
	t.Helper()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("load-%d-%d", w, i%7)
				switch _, err := s.Create(object(kind, namespace, name, fmt.Sprint(i))); {
				case err == nil:
				case i%3 == 0:
					_ = s.Delete(kind, name, namespace, nil) // The server may be away.
				default:
					_, _ = s.Update(object(kind, namespace, name, fmt.Sprint(i))) // The same.
				}
			}
		})
	}
	return func() {
		close(stop)
		writers.Wait()
	}
}
