// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// Defects of Istio's file sources, by version, as regression tests.

// Istio 1.27 and later: a file that cannot be parsed aborts the whole scan, so
// nothing changes any more until it is repaired.
func TestIstioOneBadFileFreezesTheDirectory(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", "{ this is: [not\n")
	f.write("b.yaml", entry("b", "one"))
	f.reload()
	f.wantStore("ns/b=one")
	f.write("b.yaml", entry("b", "two"))
	f.write("c.yaml", entry("c", "one"))
	f.reload()
	f.wantStore("ns/b=two", "ns/c=one")
	f.wantErrors("a.yaml:1: document 1")
}

// Istio 1.27 and later: the key of an object is its namespace and its name with
// nothing in between.
func TestIstioKeysOfDifferentObjectsCollide(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(
		strings.Replace(entry("bc", "one"), "namespace: ns", "namespace: a", 1),
		strings.Replace(entry("c", "two"), "namespace: ns", "namespace: ab", 1),
	))
	f.reload()
	f.wantStore("a/bc=one", "ab/c=two")
	f.wantErrors()
}

// Istio 1.27 and later: changes between the first reading and the subscription are lost until the
// next change.
func TestIstioChangeDuringTheFirstReadIsLost(t *testing.T) {
	for range 10 {
		var writing sync.WaitGroup
		w := watch(t, file.Options{Debounce: -1}, func(f *fixture) {
			f.write("a.yaml", entry("a", "start"))
			writing.Go(func() {
				for _, host := range []string{"one", "two", "three", "end"} {
					f.write("tmp", entry("a", host))
					f.rename("tmp", "a.yaml")
				}
			})
		})
		writing.Wait()
		w.awaitHost("a", "end")
	}
}

// Istio 1.27 and later: an error of the watcher, such as an overflow of its
// queue, ends the watching for good.
func TestIstioWatcherErrorEndsTheWatching(t *testing.T) {
	w := watch(t, file.Options{}, func(f *fixture) {
		f.write("../outside.yaml", entry("a", "one"))
		f.symlink("../outside.yaml", "a.yaml")
	})
	w.await("add ns/a=one")
	w.write("../outside.yaml", entry("a", "two"))
	w.source.LoseNotifications()
	w.await("update ns/a=two")
	w.write("b.yaml", entry("b", "one"))
	w.await("add ns/b=one")
}

// Istio up to 1.26: a create that the store has refused is never tried again
// while the object stays as it is.
func TestIstioRefusedCreateIsForgotten(t *testing.T) {
	f := newFixture(t, file.Options{})
	theirs := f.parse(entry("x", "theirs"))
	if _, err := f.store.Create(theirs); err != nil {
		t.Fatal(err)
	}
	f.write("a.yaml", entry("x", "ours"))
	f.reload()
	f.must(f.store.Delete(istio.ServiceEntry, "x", "ns", nil))
	f.reload()
	f.wantStore("ns/x=ours")
}

// Istio up to 1.26: an object that is twice in one snapshot is created, and then
// refused as existing.
func TestIstioDuplicateInOneFileFailsToCreate(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", docs(entry("x", "first"), entry("x", "second")))
	f.reload()
	f.wantEvents("add ns/x=first")
	f.wantErrors("a.yaml:15:1: document 2, ServiceEntry ns/x: object is defined elsewhere: a.yaml:1, document 1")
}

// Istio's analysis: text that is removed and comes back is considered unchanged, and its objects
// are not stored.
func TestIstioTextThatComesBackIsTakenForUnchanged(t *testing.T) {
	f := newFixture(t, file.Options{})
	both := docs(entry("x", "one"), entry("z", "one"))
	f.write("a.yaml", both)
	f.reload()
	f.write("a.yaml", entry("z", "one"))
	f.reload()
	f.wantEvents("delete ns/x=one")
	f.write("a.yaml", both)
	f.reload()
	f.wantEvents("add ns/x=one")
	f.remove("a.yaml")
	f.reload()
	f.write("a.yaml", both)
	f.reload()
	f.wantEvents("add ns/x=one", "add ns/z=one")
}

// Istio's analysis: when an object moves to another file and the old file is
// read last, the object is deleted.
func TestIstioMovedObjectIsDeletedByItsOldFile(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("z.yaml", entry("x", "one"))
	f.reload()
	f.write("a.yaml", entry("x", "one"))
	f.write("z.yaml", "# moved\n")
	f.reload()
	f.wantEvents()
	f.wantStore("ns/x=one")
}

// Istio 1.27 and later: files without a namespace give objects with an empty one, regardless of the
// default.
func TestIstioDefaultNamespaceIsNotApplied(t *testing.T) {
	f := newFixture(t, file.Options{DefaultNamespace: "default"})
	f.write("a.yaml", strings.Replace(entry("x", "one"), "  namespace: ns\n", "", 1))
	f.reload()
	f.wantStore("default/x=one")
}

// Istio's parser keeps neither UID nor owner references.
func TestIstioUIDAndOwnersAreDropped(t *testing.T) {
	f := newFixture(t, file.Options{})
	f.write("a.yaml", strings.Replace(entry("x", "one"), "  namespace: ns\n",
		"  namespace: ns\n  uid: u-1\n  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u-2}]\n", 1))
	f.reload()
	got := f.store.Get(istio.ServiceEntry, "x", "ns")
	want := configstore.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u-2"}
	if got.UID != "u-1" || len(got.OwnerReferences) != 1 || got.OwnerReferences[0] != want {
		t.Errorf("uid %q, owners %v, want u-1 and %v", got.UID, got.OwnerReferences, want)
	}
}
