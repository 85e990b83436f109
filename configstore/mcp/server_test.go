// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	meta "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// rule returns a valid DestinationRule.
func rule(namespace, name string) configstore.Config {
	return configstore.Config{
		Meta: configstore.Meta{GroupVersionKind: istio.DestinationRule, Name: name, Namespace: namespace},
		Spec: &networking.DestinationRule{Host: name + ".example.com"},
	}
}

// labelled returns an object for a revision.
func labelled(c configstore.Config, revision string) configstore.Config {
	c.Labels = map[string]string{"istio.io/rev": revision, "app": "a"}
	return c
}

func entryType() string { return typeURL(istio.ServiceEntry) }

// TestServerForStockIstio: a client that behaves as Istio's does gets all objects of all kinds, and
// an empty response for each unknown type and each type without objects, and its responses are
// recorded.
func TestServerForStockIstio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := entry("shop", "a")
		a.Labels, a.Annotations = map[string]string{"app": "a"}, map[string]string{"note": "é"}
		a.CreationTimestamp = time.Unix(1_700_000_000, 123_000_000)
		e := export(t, ServerOptions{}, a, entry("shop", "b"), entry("bank", "a"), rule("shop", "r"))
		types := append(stockTypes(), "gateway.networking.k8s.io/v1/HTTPRoute", "nonsense")
		c := stockClient(t, e.listener, controlPlane("pilot", ""), nil, types...)
		e.settle()
		same(t, "contents", c.contents(), e.wanted(""))
		var answered []string
		for _, r := range c.take() {
			answered = append(answered, r.typeURL)
		}
		slices.Sort(answered)
		slices.Sort(types)
		same(t, "answered", answered, types)
		of := e.status(controlPlane("pilot", "").GetId()).Types
		for _, typeURL := range types {
			if s := of[typeURL]; !s.Wildcard || s.Sent == "" || (s.Acked == s.Sent) == (typeURL == meshConfig) {
				t.Errorf("%s: %+v", typeURL, s)
			}
		}
	})
}

// TestServerSendsChanges: a change is sent for its kind only, and by delta for the object only;
// changes to fields that are not transferred are not sent.
func TestServerSendsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := export(t, ServerOptions{}, entry("shop", "a"), entry("shop", "b"), rule("shop", "r"))
		sotw := stockClient(t, e.listener, controlPlane("s", ""), nil, stockTypes()...)
		delta := deltaClient(t, e.listener, controlPlane("d", ""), nil, stockTypes()...)
		step := func(what string, change func(), wantSotW, wantDelta []gotResponse) {
			t.Helper()
			synctest.Wait()
			sotw.take()
			delta.take()
			change()
			e.settle()
			same(t, what+": SotW", sotw.take(), wantSotW)
			same(t, what+": delta", delta.take(), wantDelta)
			same(t, what+": contents of SotW", sotw.contents(), e.wanted(""))
			same(t, what+": contents of delta", delta.contents(), e.wanted(""))
		}
		sent := func(names ...string) []gotResponse { return []gotResponse{{typeURL: entryType(), names: names}} }
		step("create", func() { e.create(entry("shop", "c")) }, sent("shop/a", "shop/b", "shop/c"), sent("shop/c"))
		step("update", func() { e.update(entry("shop", "b", "other.example.com")) }, sent("shop/a", "shop/b", "shop/c"), sent("shop/b"))
		step("label", func() { e.update(labelled(entry("shop", "a"), "canary")) }, sent("shop/a", "shop/b", "shop/c"), sent("shop/a"))
		step("no change", func() { e.update(entry("shop", "c")) }, nil, nil)
		step("status", func() {
			c := entry("shop", "c")
			c.Status = &networking.ServiceEntryStatus{Conditions: []*meta.IstioCondition{{Type: "Ready"}}}
			if _, err := e.UpdateStatus(c); err != nil {
				t.Fatal(err)
			}
		}, nil, nil)
		step("delete", func() { e.remove(istio.ServiceEntry, "shop", "b") }, sent("shop/a", "shop/c"),
			[]gotResponse{{typeURL: entryType(), removed: []string{"shop/b"}}})
		step("delete the last", func() { e.remove(istio.DestinationRule, "shop", "r") },
			[]gotResponse{{typeURL: typeURL(istio.DestinationRule)}},
			[]gotResponse{{typeURL: typeURL(istio.DestinationRule), removed: []string{"shop/r"}}})
	})
}

// TestServerOfRevisions: a client of a revision, by its metadata or by ServerOptions, gets the
// objects of that revision and those without one, also when objects move.
func TestServerOfRevisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := export(t, ServerOptions{Revision: "stable"},
			entry("shop", "all"), labelled(entry("shop", "s"), "stable"), labelled(entry("shop", "c"), "canary"))
		clients := make(map[string]map[string]*answers)
		for node, revision := range map[string]string{"none": "stable", "stable": "stable", "canary": "canary", "other": "other"} {
			said := node
			if node == "none" {
				said = ""
			}
			clients[node] = map[string]*answers{
				revision:         stockClient(t, e.listener, controlPlane(node, said), nil, stockTypes()...),
				revision + " by": deltaClient(t, e.listener, controlPlane(node+"-delta", said), nil, stockTypes()...),
			}
		}
		conn := dial(t, e.listener)
		byName := xdstest.NewClient(conn, xdstest.ClientOptions{Delta: true, Node: controlPlane("by-name", "stable")})
		if err := errors.Join(byName.Connect(t.Context()), byName.Subscribe(entryType(), "shop/all", "shop/s", "shop/c")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { byName.Close(); _ = conn.Close() })
		check := func(what string) {
			t.Helper()
			e.settle()
			same(t, what+": by name", byName.State().Names(entryType()), slices.Sorted(maps.Keys(e.wanted("stable")[entryType()])))
			for node, both := range clients {
				for revision, c := range both {
					revision, _, _ = strings.Cut(revision, " ")
					same(t, what+": "+node, c.contents(), e.wanted(revision))
				}
			}
		}
		check("first")
		e.update(labelled(entry("shop", "c"), "stable"))
		check("moved")
		e.update(labelled(entry("shop", "all"), "canary"))
		check("taken out")
		e.update(entry("shop", "s"))
		check("for all")
		e.remove(istio.ServiceEntry, "shop", "all")
		check("gone")
	})
}

// TestServerKnowsRefusals: a NACK is a fault, with its text, and reported to the Observer, until
// the client accepts the object in another state.
func TestServerKnowsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen refusalObserver
		e := export(t, ServerOptions{ADS: ads.Options{Observer: &seen}}, entry("shop", "good"))
		node := controlPlane("pilot", "")
		const text = "ServiceEntry shop/bad: spec.hosts: not here"
		c := stockClient(t, e.listener, node, func(r gotResponse) string {
			if slices.Contains(r.names, "shop/bad") {
				return text
			}
			return ""
		}, stockTypes()...)
		synctest.Wait()
		good := e.status(node.GetId()).Types[entryType()]
		e.create(entry("shop", "bad"))
		e.settle()
		s := e.status(node.GetId()).Types[entryType()]
		faults, _ := e.server.ADS().Faults()
		if s.Rejections == 0 || s.Acked != good.Acked || len(faults) != 1 || faults[0].Name != "shop/bad" || faults[0].Text != text {
			t.Errorf("refused: %+v, %+v", s, faults)
		}
		if got := seen.take(); !strings.Contains(got, text) {
			t.Errorf("the observer was told %q", got)
		}
		e.remove(istio.ServiceEntry, "shop", "bad")
		e.settle()
		if s := e.status(node.GetId()).Types[entryType()]; s.Acked != s.Sent || s.Pending {
			t.Errorf("accepted: %+v", s)
		}
		if faults, _ := e.server.ADS().Faults(); faults != nil {
			t.Errorf("faults: %+v", faults)
		}
		same(t, "contents", c.contents(), e.wanted(""))
	})
}

// refusalObserver keeps the texts of refusals.
type refusalObserver struct {
	ads.NoObserver
	mu    sync.Mutex
	texts []string
}

func (o *refusalObserver) Request(_ ads.Stream, r ads.RequestEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Refused {
		o.texts = append(o.texts, r.TypeURL+": "+r.Error)
	}
}

func (o *refusalObserver) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.texts, "\n")
}

// TestServerSendsBatchesWhole: objects that were written together, of any kinds, come in
// one push: a response for each kind, and none with a part of it.
func TestServerSendsBatchesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := export(t, ServerOptions{}, entry("shop", "0"))
		sotw := stockClient(t, e.listener, controlPlane("s", ""), nil, stockTypes()...)
		delta := deltaClient(t, e.listener, controlPlane("d", ""), nil, stockTypes()...)
		e.settle()
		for i := range 20 {
			sotw.take()
			delta.take()
			var batch []configstore.Mutation
			name := func(j int) string { return fmt.Sprint(i, "-", j) }
			for j := range 5 {
				batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: entry("shop", name(j))})
			}
			batch = append(batch, configstore.Mutation{Op: configstore.OpCreate, Config: rule("shop", name(0))})
			if _, err := e.Apply(batch...); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // without Flush: as it comes
			names := []string{"shop/" + name(0), "shop/" + name(1), "shop/" + name(2), "shop/" + name(3), "shop/" + name(4)}
			same(t, "delta", delta.take(), []gotResponse{
				{typeURL: typeURL(istio.DestinationRule), names: names[:1]}, {typeURL: entryType(), names: names},
			})
			if got := sotw.take(); len(got) != 2 || len(got[1].names) != 5*(i+1)+1 {
				t.Errorf("batch %d: by SotW %v", i, got)
			}
		}
	})
}

// TestServerOfOlderVersions: a control plane that knows a kind by another version is sent
// the same objects.
func TestServerOfOlderVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := export(t, ServerOptions{}, entry("shop", "a"))
		const older = "networking.istio.io/v1alpha3/ServiceEntry"
		c := stockClient(t, e.listener, controlPlane("pilot", ""), nil, older)
		e.settle()
		e.create(entry("shop", "b"))
		e.settle()
		e.remove(istio.ServiceEntry, "shop", "a")
		e.settle()
		same(t, "contents", c.contents()[older], e.wanted("")[entryType()])
	})
}

// TestServerLeavesOutWhatCannotTravel: an object that cannot be sent affects only itself, and the
// log names it. Clients keep their state of it.
func TestServerLeavesOutWhatCannotTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedText
		e := export(t, ServerOptions{ADS: ads.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}},
			entry("shop", "a"), entry("shop", "b/c", "b.example.com"))
		c := stockClient(t, e.listener, controlPlane("pilot", ""), nil, stockTypes()...)
		e.settle()
		good := c.contents()[entryType()]["shop/a"]
		bad := entry("shop", "a", "later.example.com")
		bad.CreationTimestamp = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC) // which protobuf cannot say
		e.update(bad)
		e.create(entry("shop", "d"))
		e.settle()
		got := c.contents()[entryType()]
		if len(got) != 2 || got["shop/d"].Name != "d" {
			t.Errorf("contents: %v", got)
		}
		same(t, "last good state", got["shop/a"], good)
		for _, want := range []string{"shop/b/c", "metadata.name", "shop/a", "metadata.createTime"} {
			if !strings.Contains(log.text(), want) {
				t.Errorf("log without %q:\n%s", want, log.text())
			}
		}
	})
}

// lockedText is a text that several goroutines write.
type lockedText struct {
	mu  sync.Mutex
	out strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lockedText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

// TestServerReplicasAgree: replicas with the same content send the same versions, regardless of the
// histories of their stores, so that a delta client that moves between them gets nothing, or else
// the changes made meanwhile.
func TestServerReplicasAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		created := func(c configstore.Config) configstore.Config {
			c.CreationTimestamp = time.Unix(1_700_000_000, 0)
			return c
		}
		a, b := created(entry("shop", "a")), created(entry("shop", "b"))
		first := export(t, ServerOptions{}, a, b)
		second := export(t, ServerOptions{}, created(entry("shop", "b", "former.example.com")), a)
		second.update(b)
		if first.Get(istio.ServiceEntry, "a", "shop").ResourceVersion == second.Get(istio.ServiceEntry, "a", "shop").ResourceVersion {
			t.Fatal("the stores agree on resource versions, so that this tests nothing")
		}
		node := controlPlane("pilot", "")
		one := stockClient(t, first.listener, node, nil, entryType())
		other := stockClient(t, second.listener, node, nil, entryType())
		moving := deltaClient(t, first.listener, node, nil, entryType())
		synctest.Wait()
		same(t, "resource version", one.version(istio.ServiceEntry, "shop/a"), other.version(istio.ServiceEntry, "shop/a"))
		same(t, "response version", one.sums[entryType()], other.sums[entryType()])
		moving.end()
		moving = deltaClient(t, second.listener, node, moving, entryType())
		synctest.Wait()
		same(t, "sent after the move", moving.take(), []gotResponse{{typeURL: entryType()}})
		moving.end()
		first.update(entry("shop", "b", "later.example.com"))
		first.remove(istio.ServiceEntry, "shop", "a")
		first.settle()
		moving = deltaClient(t, first.listener, node, moving, entryType())
		synctest.Wait()
		same(t, "contents", moving.contents()[entryType()], first.wanted("")[entryType()])
		for _, r := range moving.take() {
			if slices.Contains(r.names, "shop/a") {
				t.Errorf("sent %v", r)
			}
		}
	})
}
