// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// TestSalvage: one object that keeps a shared resource from being made costs nothing but
// itself, while clients have a state and when they have none, and it is shown.
func TestSalvage(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1"})
		s.flush()
		first := s.judge("first", delta, nothingIsBad, "r")
		synctest.Wait()
		s.provider.set("r", map[string]string{"b": "broken", "c": "2"})
		s.flush()
		second := s.judge("second", delta, nothingIsBad, "r")
		synctest.Wait()
		want := map[string]string{"a": "1", "b": "failing", "c": "2"}
		check(t, "a client that had a state", first.state("r"), want)
		check(t, "a client that had none", second.state("r"), want)
		faults, _ := s.Faults()
		if len(faults) != 2 || faults[0].Proxy == faults[1].Proxy {
			t.Errorf("faults are %+v", faults)
		}
		for _, f := range faults {
			if f.Name != "r" || f.TypeURL != typeURL || f.Status != ads.FaultBuiltWithout || f.Object != objectKey("b") || !strings.Contains(f.Text, "broken") {
				t.Errorf("a fault is %+v", f)
			}
		}
		if text := s.log.take(); !strings.Contains(text, "Object/ns/b is left out") {
			t.Errorf("log:\n%s", text)
		}
		if err := s.WaitApplied(s.context(), nil); err != nil {
			t.Error(err)
		}
		s.provider.set("r", map[string]string{"b": "3"})
		s.flush()
		synctest.Wait()
		check(t, "mended", first.state("r"), map[string]string{"a": "1", "b": "3", "c": "2"})
		if faults, _ := s.Faults(); faults != nil {
			t.Errorf("faults when mended: %+v", faults)
		}
	})
}

// TestNotUpdated: a resource that cannot be made is shown until it can, and WaitApplied
// fails meanwhile.
func TestNotUpdated(t *testing.T) {
	for name, delta := range protocols() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &clusterProvider{}
				f := serve(t, ads.Options{Providers: []ads.Provider{p}})
				c := f.client(xdstest.ClientOptions{Delta: delta, Node: node("a", "shop")})
				f.subscribe(c, envoy.ClusterType)
				step := func(text string, failing bool) {
					t.Helper()
					p.change("x", text, nil)
					f.flush()
					synctest.Wait()
					err := f.WaitApplied(f.context(), nil)
					failed, _ := f.Faults()
					if failing != errors.Is(err, ads.ErrNotUpdated) || failing != (len(failed) == 1) {
						t.Errorf("%s: WaitApplied = %v, failed are %+v", text, err, failed)
					}
					if failing && len(failed) == 1 && (failed[0].Name != "x" || failed[0].Status != ads.FaultNotBuilt || !strings.Contains(failed[0].Text, "broken")) {
						t.Errorf("%s: failed are %+v", text, failed)
					}
				}
				step("broken", true)
				step("1", false)
				step("broken", true)
				step("1", false)
				step("broken", true)
				step("", false)
			})
		})
	}
}

// TestNotUpdatedNames: a resource of a provider that cannot be built is reported with a view that it
// is for, its type and its name.
func TestNotUpdatedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		p, seen := &clusterProvider{}, &failedObserver{}
		p.change("x", "broken", nil)
		f := serve(t, ads.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), Observer: seen,
			Providers: []ads.Provider{p},
		})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType, "x")
		synctest.Wait()
		view := `view (namespace "shop", Envoy): `
		err := f.WaitApplied(f.context(), nil)
		for _, want := range []string{
			view + "not updated: " + envoy.ClusterType + " x: provider test: broken",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("WaitApplied = %v, want an error with %q", err, want)
			}
		}
		said := strings.ReplaceAll(log.take(), `\"`, `"`)
		for _, want := range []string{
			view + envoy.ClusterType + " x: provider test: broken",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("log without %q:\n%s", want, said)
			}
			if all := strings.Join(seen.take(), "\n"); !strings.Contains(all, want) {
				t.Errorf("the observer was not told %q:\n%s", want, all)
			}
		}
	})
}

// failedObserver records the errors of Failed.
type failedObserver struct {
	ads.NoObserver
	mu    sync.Mutex
	texts []string
}

func (o *failedObserver) Failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.texts = append(o.texts, err.Error())
}

func (o *failedObserver) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.texts)
}

// TestFailedOfOthers: a resource that cannot be made is no concern of a client that gives
// it up.
func TestFailedOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clusterProvider{}
		p.change("x", "broken", nil)
		p.change("y", "1", nil)
		f := serve(t, ads.Options{Providers: []ads.Provider{p}})
		c := f.client(xdstest.ClientOptions{Delta: true, Node: node("a", "shop")})
		f.subscribe(c, envoy.ClusterType, "x", "y")
		synctest.Wait()
		if err := f.WaitApplied(f.context(), nil); !errors.Is(err, ads.ErrNotUpdated) {
			t.Errorf("WaitApplied = %v", err)
		}
		if err := c.Unsubscribe(envoy.ClusterType, "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := f.WaitApplied(f.context(), nil); err != nil {
			t.Errorf("given up: WaitApplied = %v", err)
		}
	})
}
