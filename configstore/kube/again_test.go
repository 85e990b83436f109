// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"

	"github.com/pilotkit/pilotkit/configstore/kube"
)

// TestMadeAgainUnseen: an object that was deleted and created again without a watch is another
// object. If it is invalid, the last good state of the former one is removed, and the errors
// concern the new one.
func TestMadeAgainUnseen(t *testing.T) {
	server, schemas, kind, ns, _ := serveLimits(t, "again.example.com")
	writer := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	anyway := newCache(t, restConfig(server.Config()), schemas, kube.Options{SkipValidation: true})
	front := server.Front(t)
	watcher := newCache(t, restConfig(front.Config()), schemas, kube.Options{})
	names := []string{"bad", "kept", "odd"}
	for _, name := range names {
		create(t, writer, object(kind, ns, name, "1"))
	}
	r := record(watcher, kind)
	runSynced(t, watcher)
	r.Expect(t, "add Limit "+ns+"/bad", "add Limit "+ns+"/kept", "add Limit "+ns+"/odd")

	front.Refuse(true)
	for _, name := range []string{"bad", "odd"} {
		if err := writer.Delete(kind, name, ns, nil); err != nil {
			t.Fatal(err)
		}
		create(t, anyway, object(kind, ns, name, name))
	}
	update(t, anyway, object(kind, ns, "kept", "bad")) // the same object
	watcher.SelectNamespaces(nil)                      // It lists, and does not go on where it was.
	front.Refuse(false)
	r.Expect(t, "delete Limit "+ns+"/bad", "delete Limit "+ns+"/odd", "add Limit "+ns+"/odd")
	expectErrors(t, watcher, "bad", "kept")
	if watcher.Get(kind, "bad", ns) != nil || value(watcher.Get(kind, "kept", ns)) != "1" {
		t.Error("the object that was deleted is there, or that which was changed is not")
	}
	if w := watcher.Warnings(); len(w) != 1 || w[0].Object.Name != "odd" {
		t.Errorf("the warnings are %v", w)
	}
}
