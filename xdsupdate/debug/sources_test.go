// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/checkpoint"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/bridge"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
)

// down is a catalogue that cannot be read.
type down struct{}

func (down) List(context.Context) (bridge.Listing, error) {
	return bridge.Listing{}, errors.New("connection refused")
}

// listed is a source that lists errors and warnings.
type listed struct{}

func (listed) HasSynced() bool { return true }

func (listed) SourceState() configstore.SourceState {
	return configstore.SourceState{Synced: true, Problems: []configstore.SourceProblem{
		{Text: "a wrong thing"}, {Text: "a strange thing", Warning: true},
	}}
}

// TestSources: the states of all kinds of sources, and their problems.
func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const good = "apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: NAME, namespace: shop}\nspec: {ADDRESS: 10.0.0.1}\n"
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := func(name, address string) string {
		return strings.NewReplacer("NAME", name, "ADDRESS", address).Replace(good)
	}
	store := memory.Make(istio.Schemas())
	files := file.New(dir, store)
	write("kept", text("kept", "address"))
	write("never", text("never", "adress"))
	write("unknown", "apiVersion: networking.istio.io/v1\nkind: Gatewayy\nmetadata: {name: edge, namespace: shop}\n")
	if err := files.Reload(); err != nil {
		t.Fatal(err)
	}
	write("kept", text("kept", "adress"))
	if err := files.Reload(); err != nil {
		t.Fatal(err)
	}
	catalogue := bridge.New(down{}, bridge.Options{Provider: registry.ProviderID("Consul")})
	if err := catalogue.Sync(t.Context()); err == nil {
		t.Error("the catalogue can be read")
	}
	broken := filepath.Join(t.TempDir(), "checkpoint")
	if err := os.WriteFile(broken, []byte("no checkpoint"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := debug.New(debug.Options{Configs: store, Sources: []configstore.Source{
		configstore.SourceOf("directory", files), configstore.SourceOf("consul", catalogue), configstore.SourceOf("cluster", listed{}),
		configstore.SourceOf("disk", checkpoint.New(memory.NewController(memory.Make(istio.Schemas())), broken)),
	}})
	demand(t, "sources", htmlOf(t, h, "/sources"), "unknown field", "adress", "connection refused", "a wrong thing", "a strange thing", "not a checkpoint file",
		`<th scope="row">Gatewayy shop/edge</th>`) // which has no page
	demand(t, "one source", htmlOf(t, h, "/sources?source=cluster"), "of cluster", "1–2 of 2")
	demand(t, "an object that is kept", htmlOf(t, h, "/config?kind=WorkloadEntry&namespace=shop&name=kept"),
		"What sources say", "unknown field", "The store keeps the last good state", "address: 10.0.0.1")
	w := ask(h, "/config?kind=WorkloadEntry&namespace=shop&name=never")
	demand(t, "an object that was never good", w.Body.String(), "The store does not have it: a source refuses it", "unknown field")
	if w.Code != 404 {
		t.Errorf("an object that the store does not have: %d", w.Code)
	}
	demand(t, "the first page", htmlOf(t, h, "/"), "Parts of sources that are not taken", "consul: ", "connection refused")
}
