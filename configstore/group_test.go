// SPDX-License-Identifier: Apache-2.0

package configstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
)

// parts are parts of a Group that note when they start and end.
type parts struct {
	mu  sync.Mutex
	log []string
}

func (p *parts) add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
}

func (p *parts) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *parts) part(name string, synced time.Duration) configstore.Part {
	return configstore.Part{Name: name, Syncer: &syncsAt{at: time.Now().Add(synced)}, Run: func(stop <-chan struct{}) error {
		p.add("start " + name)
		<-stop
		p.add("stop " + name)
		return nil
	}}
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p parts
		serve := p.part("serve", 0)
		serve.AfterSync = true
		g := &configstore.Group{Parts: []configstore.Part{p.part("files", time.Minute), serve}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx) }()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if !slices.Equal(p.lines(), []string{"start files"}) {
			t.Errorf("before the files have synced: %q", p.lines())
		}
		time.Sleep(31 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := []string{"start files", "start serve", "stop serve", "stop files"}; !slices.Equal(p.lines(), want) {
			t.Errorf("%q, want %q", p.lines(), want)
		}
	})
}

// TestGroupOfPartsThatFail ends with the error of the first, also while it waits for sync.
func TestGroupOfPartsThatFail(t *testing.T) {
	broken := errors.New("broken")
	for name, after := range map[string]bool{"before sync": false, "after sync": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p parts
				var never time.Duration
				if !after {
					never = 24 * time.Hour
				}
				g := &configstore.Group{Parts: []configstore.Part{
					p.part("files", never),
					{Name: "etcd", Run: func(<-chan struct{}) error { time.Sleep(time.Minute); return broken }},
					{Name: "deaf", Run: func(stop <-chan struct{}) error { <-stop; time.Sleep(11 * time.Second); return nil }},
				}}
				err := g.Run(t.Context())
				if !errors.Is(err, broken) || !errors.Is(err, configstore.ErrPartEnded) || !strings.HasPrefix(err.Error(), "etcd has ended: broken") {
					t.Errorf("the error is %v", err)
				}
				if !strings.Contains(err.Error(), "stop deaf: the part has not ended within 10s") {
					t.Errorf("the error is %v", err)
				}
				if !slices.Contains(p.lines(), "stop files") {
					t.Errorf("%q", p.lines())
				}
				time.Sleep(time.Second)
			})
		})
	}
}

// down is a catalogue that does not answer.
type down struct{}

func (down) List(context.Context) (bridge.Listing, error) {
	return bridge.Listing{}, errors.New("connection refused")
}

// TestForgottenParts: a Group says which part has not synced and why; so does WaitForSync.
func TestForgottenParts(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := memory.Make(istio.Schemas())
		configs := memory.NewController(store)
		file.New(dir, store) // its Run is forgotten
		registries := aggregate.NewController()
		registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance { return serviceentry.New(configs, updater) })
		var log bytes.Buffer
		g := &configstore.Group{
			Parts:  []configstore.Part{configstore.Runs("configs", configs.Run, configs), configstore.Runs("registries", registries.Run, registries)},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := g.Run(ctx); err != nil {
			t.Error(err)
		}
		const want = `waiting for sync" parts="[configs (*file.Source (neither Run nor Reload has been called)) registries (External: `
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %s", &log)
		}
		idle := memory.NewController(memory.Make(istio.Schemas()))
		err := configstore.WaitForSync(ctx, idle)
		if err == nil || err.Error() != "wait for sync of *memory.Controller (Run has not been called): context deadline exceeded" {
			t.Errorf("the error is %v", err)
		}
		services := bridge.New(down{}, bridge.Options{Updater: xdsupdate.Discard{}})
		const unread = "*bridge.Bridge (nothing has been read: Run has not been called, or the origin has not answered)"
		if got := configstore.Pending(services); got != unread {
			t.Errorf("pending are %s, want %s", got, unread)
		}
		_ = services.Sync(t.Context())
		if got, want := configstore.Pending(services), "*bridge.Bridge (list the catalogue: connection refused)"; got != want {
			t.Errorf("pending are %s, want %s", got, want)
		}
		all := aggregate.MakeCache(configs)
		if got, want := configstore.Pending(idle, all, &syncsAt{}), "*memory.Controller (Run has not been called), "+
			"*aggregate.Cache (*memory.Controller (*file.Source (neither Run nor Reload has been called)))"; got != want {
			t.Errorf("pending are %s, want %s", got, want)
		}
	})
}

// TestGroupWithoutNames is refused, and what was started is stopped.
func TestGroupWithoutNames(t *testing.T) {
	var p parts
	g := &configstore.Group{Parts: []configstore.Part{p.part("files", 0), {Run: func(<-chan struct{}) error { return nil }}}}
	if err := g.Run(t.Context()); err == nil || err.Error() != `configstore.Group: part 1 ("") has no Name or no Run` {
		t.Errorf("the error is %v", err)
	}
	if len(p.lines()) != 2 {
		t.Errorf("%q", p.lines())
	}
}
