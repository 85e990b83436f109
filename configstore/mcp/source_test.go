// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// TestRequestsAreThoseOfIstio: all kinds, under their names as type URLs, the node in the
// first request only, and replies with version and nonce.
func TestRequestsAreThoseOfIstio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, end := drive(t, newStore(), SourceOptions{Revision: "canary"})
		defer end()
		kinds := istio.Schemas().All()
		requests := d.open(len(kinds))
		nodes := 0
		for _, schema := range kinds {
			r := requests[schema.GroupVersionKind.String()]
			if r == nil {
				t.Errorf("%s is not requested", schema.GroupVersionKind)
				continue
			}
			if r.GetVersionInfo() != "" || r.GetResponseNonce() != "" || len(r.GetResourceNames()) > 0 {
				t.Errorf("request %v", r)
			}
			if node := r.GetNode(); node != nil {
				nodes++
				fields := node.GetMetadata().GetFields()
				if parts := strings.Split(node.GetId(), "~"); len(parts) != 4 || parts[0] != "waypoint" || parts[3] != "istio-system.svc.cluster.local" {
					t.Errorf("node %q", node.GetId())
				}
				if fields["GENERATOR"].GetStringValue() != "api" || fields["ISTIO_REVISION"].GetStringValue() != "canary" {
					t.Errorf("metadata %v", fields)
				}
			}
		}
		if nodes != 1 {
			t.Errorf("%d requests with a node, want the first", nodes)
		}
		if r := d.say("7", entries(t, "a")...); r.GetVersionInfo() != "7" || r.GetResponseNonce() != "n7" || r.GetErrorDetail() != nil ||
			r.GetTypeUrl() != serviceEntryURL {
			t.Errorf("reply %v", r)
		}
	})
}

// TestState: an answer is the whole state of its kind.
func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		for i, tt := range []string{"", "a b c", "a c", "a c", "d", "", "a"} {
			d.say(string(rune('0'+i)), entries(t, strings.Fields(tt)...)...)
			synctest.Wait()
			if got := names(store); got != tt {
				t.Errorf("the store has %q, want %q", got, tt)
			}
		}
		if s := source.Status(); s.Stale() || !s.Connected || s.Delta || s.Applied.IsZero() || s.Kinds[0] != (KindStatus{
			Kind: istio.ServiceEntry, TypeURL: serviceEntryURL, Answered: true, Version: "6", Objects: 1,
		}) {
			t.Errorf("status %+v", s)
		}
	})
}

// TestUnchangedIsNotWritten: neither the version nor other bytes of the same content are
// a change, and metadata is one.
func TestUnchangedIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: newStore()}
		o := only(istio.ServiceEntry)
		o.Domain = "cluster.local"
		d, _, end := drive(t, store, o)
		defer end()
		d.open(1)
		c := entry("default", "a")
		c.CreationTimestamp = time.Unix(1700000000, 0)
		c.ResourceVersion = "1"
		d.say("1", encoded(t, c))
		c.ResourceVersion = "2"
		d.say("2", encoded(t, c))
		if got := store.Revision(); got != 1 || len(store.batches) != 1 {
			t.Errorf("revision %d, want 1, %d batches", got, len(store.batches))
		}
		c.Labels = map[string]string{"a": "b"}
		d.say("3", encoded(t, c))
		if got := store.Revision(); got != 2 {
			t.Errorf("revision %d, want 2", got)
		}
		got := store.Get(istio.ServiceEntry, "a", "default")
		if got.Domain != "cluster.local" || !got.CreationTimestamp.Equal(c.CreationTimestamp) || got.Labels["a"] != "b" || got.ResourceVersion != "2" {
			t.Errorf("stored %+v", got.Meta)
		}
	})
}

// TestRevision: objects of other revisions are not taken, and an object that is moved to
// another one is gone.
func TestRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		o := only(istio.ServiceEntry)
		o.Revision = "canary"
		d, _, end := drive(t, store, o)
		defer end()
		d.open(1)
		labelled := func(name, revision string) *anypb.Any {
			c := entry("default", name)
			c.Labels = map[string]string{"istio.io/rev": revision}
			return encoded(t, c)
		}
		d.say("1", labelled("a", "canary"), labelled("b", "stable"), entries(t, "c")[0])
		if got := names(store); got != "a c" {
			t.Errorf("the store has %q", got)
		}
		d.say("2", labelled("a", "stable"), labelled("b", "canary"), entries(t, "c")[0])
		if got := names(store); got != "b c" {
			t.Errorf("the store has %q", got)
		}
	})
}

// TestForeignType: a response of an unsubscribed type is ignored, without a reply.
func TestForeignType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.send("networking.istio.io/v1/Gateway", "1")
		d.send("some.example.com/v1/Other", "1", &anypb.Any{TypeUrl: "other"})
		if r := d.say("1", entries(t, "a")...); r.GetTypeUrl() != serviceEntryURL {
			t.Errorf("reply %v", r)
		}
		synctest.Wait()
		if r := source.Report(); r.Foreign != 2 || len(r.Errors) > 0 {
			t.Errorf("report %+v", r)
		}
	})
}

// TestOtherVersion: a kind may be requested under any of its versions.
func TestOtherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		old := istio.ServiceEntry
		old.Version = "v1alpha3"
		d, source, end := drive(t, store, only(old))
		defer end()
		d.open(1)
		d.send(old.String(), "1", entries(t, "a")...)
		synced(t, source)
		if got := store.Get(istio.ServiceEntry, "a", "default"); got == nil || got.GroupVersionKind != istio.ServiceEntry {
			t.Errorf("stored %v", got)
		}
	})
}

// TestHasSynced: of three kinds all have to be answered, and the caches of the store wait
// for it.
func TestHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d, source, end := drive(t, store, only(istio.ServiceEntry, istio.Gateway, istio.Sidecar))
		defer end()
		cache := memory.NewController(store)
		d.open(3)
		d.say("1", entries(t, "a")...)
		cache.Drain()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := configstore.WaitForSync(ctx, source); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitForSync = %v with one of three kinds", err)
		}
		if source.HasSynced() || cache.HasSynced() || !source.Status().Stale() {
			t.Error("synced with one of three kinds")
		}
		d.send(istio.Gateway.String(), "1")
		d.send(istio.Sidecar.String(), "1", &anypb.Any{}) // bad, but an answer
		if err := configstore.WaitForSync(t.Context(), source); err != nil {
			t.Error(err)
		}
		cache.Drain()
		if !cache.HasSynced() || source.Status().Stale() {
			t.Error("not synced after all were answered")
		}
	})
}

// TestOneBatch: a response is one batch, regardless of its content.
func TestOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: newStore()}
		d, _, end := drive(t, store, only(istio.ServiceEntry))
		defer end()
		d.open(1)
		d.say("1", entries(t, "a", "b", "c")...)
		d.say("2", append(entries(t, "b", "d"), encoded(t, entry("default", "c", "other.example.com")))...)
		d.say("3", entries(t, "b", "d")...)
		if want := []int{3, 3, 1}; !slices.Equal(store.batches, want) || store.single != 0 {
			t.Errorf("batches of %v, and %d writes, want %v", store.batches, store.single, want)
		}
	})
}

// TestOneBatchOfDelta: so is a delta, even if it removes an object twice.
func TestOneBatchOfDelta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: newStore()}
		d, _, end := drive(t, store, deltaOnly())
		defer end()
		d.openDelta()
		d.tell(delta(t, "1", nil, versioned("a", "1"), versioned("b", "1")))
		d.tell(delta(t, "2", []string{"default/a", "default/a"}, versioned("b", "2", "other.example.com")))
		if want := []int{2, 2}; !slices.Equal(store.batches, want) {
			t.Errorf("batches of %v, want %v", store.batches, want)
		}
	})
}

// counted counts writes.
type counted struct {
	*memory.Store
	batches []int
	single  int
}

func (c *counted) Apply(mutations ...configstore.Mutation) (uint64, error) {
	c.batches = append(c.batches, len(mutations))
	return c.Store.Apply(mutations...)
}

func (c *counted) Create(config configstore.Config) (string, error) {
	c.single++
	return c.Store.Create(config)
}

// TestMistakesOfHosts: an invalid call panics.
func TestMistakesOfHosts(t *testing.T) {
	t.Parallel()
	none := configstore.NewSchemasBuilder().Build()
	for name, call := range map[string]func(){
		"a kind that the store does not have": func() { NewSource(nil, memory.Make(none), only(istio.ServiceEntry)) },
		"a kind twice":                        func() { NewSource(nil, newStore(), only(istio.ServiceEntry, istio.ServiceEntry)) },
		"Run twice": func() {
			source := NewSource(nil, memory.Make(none))
			if !source.HasSynced() {
				t.Error("a source of no kinds has not synced")
			}
			source.ran.Store(true)
			source.Run(nil)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// TestSourcesAgree: objects without a time of creation are equal in all processes, whenever and in
// which order a process has received them, because the oldest of competing objects wins.
func TestSourcesAgree(t *testing.T) {
	all := strings.Fields("a b c d e")
	process := func(seed uint64) (out contents) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			order := slices.Clone(all)
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			store := newStore()
			d, _, end := drive(t, store, only(istio.ServiceEntry))
			defer end()
			d.open(1)
			for n := 0; n < len(order); {
				n = min(len(order), n+1+random.IntN(3))
				time.Sleep(time.Hour)
				d.say(strconv.Itoa(n), entries(t, order[:n]...)...)
			}
			synctest.Wait()
			out = contentsOf(store, "")
		})
		return out
	}
	want := process(0)
	if n := len(want[serviceEntryURL]); n != len(all) {
		t.Fatalf("%d objects, want %d", n, len(all))
	}
	for seed := range uint64(5) {
		same(t, fmt.Sprintf("process %d", seed+1), process(seed+1), want)
	}
}
