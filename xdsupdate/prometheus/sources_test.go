// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate/prometheus"
)

// knowsAll returns a source that sets all fields of its state.
func knowsAll(name string) configstore.Source {
	return configstore.Source{Name: name, State: func() configstore.SourceState {
		return configstore.SourceState{
			Synced: true, Freshness: configstore.Stale, StaleSince: time.Unix(2000, 0), Content: time.Unix(1000, 5e8), Err: errors.New("a"),
			Problems: []configstore.SourceProblem{{Text: "b"}, {Text: "c", Warning: true}, {Text: "d", Warning: true}, {Text: "e", Warning: true}},
		}
	}}
}

// TestSources: known values have metrics, and unknown values have none.
func TestSources(t *testing.T) {
	got := scrape(t, registered(t, prometheus.NewSourceCollector(
		knowsAll("all"), configstore.SourceOf("synced", syncer(false)), configstore.SourceOf("fresh", fresh{}),
	)))
	check(t, "series", got, map[string]float64{
		`pilotkit_source_synced{source="all"}`: 1, `pilotkit_source_stale{source="all"}`: 1,
		`pilotkit_source_stale_since_timestamp_seconds{source="all"}`: 2000,
		`pilotkit_source_content_timestamp_seconds{source="all"}`:     1000.5,
		`pilotkit_source_errors{source="all"}`:                        2, `pilotkit_source_warnings{source="all"}`: 3,
		`pilotkit_source_synced{source="synced"}`: 0, `pilotkit_source_errors{source="synced"}`: 0, `pilotkit_source_warnings{source="synced"}`: 0,
		`pilotkit_source_synced{source="fresh"}`: 1, `pilotkit_source_stale{source="fresh"}`: 0,
		`pilotkit_source_errors{source="fresh"}`: 0, `pilotkit_source_warnings{source="fresh"}`: 0,
	})
}

type syncer bool

func (s syncer) HasSynced() bool { return bool(s) }

// fresh is a source without problems.
type fresh struct{ syncer }

func (fresh) SourceState() configstore.SourceState {
	return configstore.SourceState{Synced: true, Freshness: configstore.Fresh}
}

const serviceEntry = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: prod}
spec:
  hosts: [db.example.com]
  ports: [{number: 5432, name: tcp, protocol: TCP}]
  resolution: DNS
`

// TestFileSource checks the metrics of a directory with errors, and of its configs.
func TestFileSource(t *testing.T) {
	dir := t.TempDir()
	store := configs.Make(istio.Schemas())
	source := file.New(dir, store)
	all := registered(t, prometheus.NewSourceCollector(configstore.SourceOf("files", source)), prometheus.NewConfigCollector(store))
	const synced, faults = `pilotkit_source_synced{source="files"}`, `pilotkit_source_errors{source="files"}`
	const entries = `pilotkit_configs{group="networking.istio.io",kind="ServiceEntry",version="v1"}`
	series(t, "before", scrape(t, all), map[string]float64{synced: 0, entries: 0})
	for _, step := range []struct {
		text            string
		errors, entries float64
	}{{serviceEntry, 0, 1}, {serviceEntry + "  resolutio: STATIC\n", 1, 1}} {
		if err := os.WriteFile(filepath.Join(dir, "db.yaml"), []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := source.Reload(); err != nil {
			t.Fatal(err)
		}
		series(t, step.text, scrape(t, all), map[string]float64{
			synced: 1, faults: step.errors, entries: step.entries,
			`pilotkit_source_warnings{source="files"}`: float64(len(source.Report().Warnings)),
		})
	}
}

// TestBridgeSource follows a catalogue that goes away and comes back.
func TestBridgeSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		catalogue := &catalogue{}
		b := bridge.New(catalogue)
		all := registered(t, prometheus.NewSourceCollector(configstore.SourceOf("consul", b)))
		const synced, stale = `pilotkit_source_synced{source="consul"}`, `pilotkit_source_stale{source="consul"}`
		const content, faults = `pilotkit_source_content_timestamp_seconds{source="consul"}`, `pilotkit_source_errors{source="consul"}`
		before := scrape(t, all)
		series(t, "before", before, map[string]float64{synced: 0, faults: 0})
		if _, there := before[content]; there {
			t.Error("nothing was listed, and has a time")
		}
		listed := time.Now()
		if err := b.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		series(t, "listed", scrape(t, all), map[string]float64{synced: 1, stale: 0, faults: 0, content: float64(listed.Unix())})
		time.Sleep(time.Hour)
		catalogue.err = errors.New("no route to host")
		if err := b.Sync(t.Context()); err == nil {
			t.Fatal("no error")
		}
		series(t, "down", scrape(t, all), map[string]float64{
			synced: 1, stale: 1, faults: 1, content: float64(listed.Unix()),
			`pilotkit_source_stale_since_timestamp_seconds{source="consul"}`: float64(time.Now().Unix()),
		})
		catalogue.err, catalogue.Listing = nil, defective()
		if err := b.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		series(t, "two defects", scrape(t, all), map[string]float64{synced: 1, stale: 0, faults: 2, content: float64(time.Now().Unix())})
		catalogue.Records = catalogue.Records[:1]
		if err := b.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		series(t, "none", scrape(t, all), map[string]float64{stale: 0, faults: 0})
	})
}

type catalogue struct {
	bridge.Listing
	err error
}

func (c *catalogue) List(context.Context) (bridge.Listing, error) { return c.Listing, c.err }

// defective is a list of one good record and two others.
func defective() bridge.Listing {
	record := func(host, address string) bridge.Record {
		return bridge.Record{
			Service: &registry.Service{
				Hostname: registry.Hostname(host), Resolution: registry.ClientSideLB,
				Ports:      []*registry.Port{{Name: "grpc", Number: 80, Protocol: registry.ProtocolGRPC}},
				Attributes: registry.ServiceAttributes{Name: host, Namespace: "shop"},
			},
			Endpoints: []*registry.Endpoint{{
				Addresses: []string{address}, EndpointPort: 80, ServicePortName: "grpc", HealthStatus: registry.Healthy,
			}},
		}
	}
	unreadable := record("c", "10.0.0.3")
	unreadable.Err = errors.New("check is no list")
	return bridge.Listing{Records: []bridge.Record{record("a", "10.0.0.1"), record("b", "nowhere at all"), unreadable}}
}

// TestCheckpointSource starts warm: the metrics describe the file until the source has synced.
func TestCheckpointSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configs")
	const synced, stale = `pilotkit_source_synced{source="warm"}`, `pilotkit_source_stale{source="warm"}`
	const content, faults = `pilotkit_source_content_timestamp_seconds{source="warm"}`, `pilotkit_source_errors{source="warm"}`
	start := func() (*late, *checkpoint.Cache, *client.Registry) {
		source := &late{Controller: configs.NewController(configs.Make(istio.Schemas()))}
		cache := checkpoint.New(source, path)
		return source, cache, registered(t, prometheus.NewSourceCollector(configstore.SourceOf("warm", cache)))
	}

	source, cache, all := start()
	source.synced = true
	cache.Drain()
	if err := cache.Save(); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, all)
	series(t, "synced", got, map[string]float64{synced: 1, stale: 0, faults: 0})
	if _, there := got[content]; there {
		t.Error("what is not stale has the time of the file")
	}

	source, cache, all = start()
	cache.Drain()
	series(t, "warm", scrape(t, all), map[string]float64{
		synced: 1, stale: 1, faults: 0,
		content: float64(cache.Status().Written.UnixMilli()) / 1000,
	})
	source.synced = true
	cache.Drain()
	series(t, "synced again", scrape(t, all), map[string]float64{synced: 1, stale: 0, faults: 0})

	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	source, cache, all = start()
	cache.Drain()
	series(t, "refused", scrape(t, all), map[string]float64{synced: 0, faults: 1})
	source.synced = true
	cache.Drain()
	series(t, "replaced", scrape(t, all), map[string]float64{synced: 1, stale: 0, faults: 0})
}

// late is a cache whose sync the test triggers.
type late struct {
	*configs.Controller
	synced bool
}

func (l *late) HasSynced() bool { return l.synced && l.Controller.HasSynced() }

// TestPanicOfASource: the panic of a source is an error of the scrape, and does not affect other
// metrics.
func TestPanicOfASource(t *testing.T) {
	bad := configstore.Source{Name: "bad", State: func() configstore.SourceState { panic("a fault") }}
	all := registered(t, prometheus.NewSourceCollector(bad, knowsAll("good")), prometheus.NewConfigCollector(panics{}))
	w := httptest.NewRecorder()
	promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).
		ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `pilotkit_source_errors{source="good"} 2`) || strings.Contains(w.Body.String(), "bad") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if _, err := all.Gather(); err == nil || strings.Count(err.Error(), "a fault") != 2 {
		t.Errorf("Gather: %v", err)
	}
}

type panics struct{ configstore.Reader }

func (panics) Schemas() configstore.Schemas { panic("a fault") }

// TestWrongArguments: arguments that would fail each scrape panic at once, with a descriptive text.
func TestWrongArguments(t *testing.T) {
	for want, call := range map[string]func(){
		`source 1: invalid source name ""`:        func() { prometheus.NewSourceCollector(knowsAll("a"), knowsAll("")) },
		`source 0: invalid source name "\xff"`:    func() { prometheus.NewSourceCollector(knowsAll("\xff")) },
		`two sources have the name "a"`:           func() { prometheus.NewSourceCollector(knowsAll("a"), knowsAll("a")) },
		`source "a": State is nil`:                func() { prometheus.NewSourceCollector(configstore.Source{Name: "a"}) },
		"NewServerCollector: no server":           func() { prometheus.NewServerCollector(nil) },
		"NewConfigCollector: no store":            func() { prometheus.NewConfigCollector(nil) },
		"prometheus.New: 2 arguments of the type": func() { prometheus.New(prometheus.Options{}, prometheus.Options{}) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("%s: %s", want, text)
				}
			}()
			call()
		}()
	}
}
