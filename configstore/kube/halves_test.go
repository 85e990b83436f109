// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// withStatus returns an object with a text in its status.
func withStatus(c configstore.Config, text string) configstore.Config {
	c.Status = &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(text)}}
	return c
}

// TestBetweenTheHalvesOfAWrite: a foreign write between the two requests of an Update, or a Create,
// is not lost.
func TestBetweenTheHalvesOfAWrite(t *testing.T) {
	server, schemas, kind, ns, stored := serveLimits(t, "halves.example.com")
	other := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	between := func() {} // called before a status is written
	config := restConfig(server.Config())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPut && strings.HasSuffix(request.URL.Path, "/status") {
				between()
			}
			return next.RoundTrip(request)
		})
	})
	c := newCache(t, config, schemas, kube.Options{})
	// interfere makes another writer write a status at the revision that it sees.
	interfere := func(name string) {
		state, err := stored.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := withStatus(object(kind, ns, name, ""), "of the other")
		o.ResourceVersion = state["limits "+ns+"/"+name]
		if _, err := other.UpdateStatus(o); err != nil {
			t.Error(err)
		}
	}
	for name, write := range map[string]func(name string) error{
		"create": func(name string) error {
			_, err := c.Create(withStatus(object(kind, ns, name, "2"), "mine"))
			return err
		},
		"update": func(name string) error {
			create(t, other, object(kind, ns, name, "1"))
			_, err := c.Update(withStatus(object(kind, ns, name, "2"), "mine"))
			return err
		},
		"conditional": func(name string) error {
			o := withStatus(object(kind, ns, name, "2"), "mine")
			o.ResourceVersion = create(t, other, object(kind, ns, name, "1"))
			_, err := c.Update(o)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			between = func() { interfere(name) }
			if err := write(name); !errors.Is(err, configstore.ErrConflict) || strings.Count(err.Error(), "the content was written") != 1 {
				t.Errorf("the error is %v, want ErrConflict that says what was written", err)
			}
			between = func() {}
			watcher := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
			runSynced(t, watcher)
			got := watcher.Get(kind, name, ns)
			if text := got.Status.(*structpb.Struct).Fields["text"].GetStringValue(); text != "of the other" || value(got) != "2" {
				t.Errorf("there is the status %q and the value %q", text, value(got))
			}
			if err := write(name + "-alone"); err != nil {
				t.Errorf("alone: %v", err)
			}
		})
	}
}

// TestStatusRemoved: an UpdateStatus without a status also removes a status that cannot be decoded.
func TestStatusRemoved(t *testing.T) {
	c, o, objects := serveFutureEntries(t, "removed.example.com")
	putStatus(t, objects, "a", map[string]any{"addresses": "no list"})
	o.Status, o.ResourceVersion = nil, ""
	if _, err := c.UpdateStatus(o); err != nil {
		t.Fatal(err)
	}
	if status := parts(t, objects)["status"]; status != nil {
		t.Errorf("the status is %v", status)
	}
}
