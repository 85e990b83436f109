// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
)

// A program that drives the source itself calls Reload; one that wants to follow
// the directory runs Run in a goroutine instead.
func Example() {
	dir, err := os.MkdirTemp("", "config")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "db.yaml"), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	manifest := `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: db
spec:
  hosts:
  - db.example.com
  ports:
  - number: 5432
    name: tcp
  resolution: DNS
`
	store := memory.Make(istio.Schemas())
	cache := memory.NewController(store)
	cache.RegisterEventHandler(istio.ServiceEntry, func(_, curr configstore.Config, event configstore.Event) {
		fmt.Println(event, curr.Key().Object())
	})
	source := file.New(dir, store, file.Options{DefaultNamespace: "default"})
	reload := func() {
		if err := source.Reload(); err != nil {
			panic(err)
		}
		cache.Drain()
		for _, e := range source.Errors() {
			fmt.Printf("line %d of document %d: %s\n", e.Line, e.Document, e.Object.Object())
		}
	}

	write(manifest)
	reload()
	write(manifest + "  resolutio: STATIC\n")
	reload()
	fmt.Println("still there:", store.Get(istio.ServiceEntry, "db", "default") != nil)
	// Output:
	// add ServiceEntry default/db
	// line 12 of document 1: ServiceEntry default/db
	// still there: true
}
