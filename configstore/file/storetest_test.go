// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/configstore/storetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestReadSide proves that a store that is filled by files keeps what stores
// promise to their readers.
func TestReadSide(t *testing.T) {
	tier.OnlyFull(t, "the promises of stores, by a store that files fill")
	storetest.TestStore(t, readSide)
	storetest.TestCache(t, readSide)
}

func readSide(tb testing.TB, schemas configstore.Schemas) storetest.Subject {
	tb.Helper()
	store := memory.Make(schemas, memory.Options{DetectMutations: true})
	w := &fileWriter{ConfigStore: store}
	root := tb.TempDir()
	for i := range 16 {
		dir := filepath.Join(root, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o750); err != nil {
			tb.Fatal(err)
		}
		w.dirs = append(w.dirs, dir)
		source := file.New(dir, store, file.Options{Domain: "cluster.local"})
		if err := source.Reload(); err != nil { // the store's caches wait for it
			tb.Fatal(err)
		}
		w.sources = append(w.sources, source)
	}
	// Hundreds of objects are as many files and reloads: too much for a busy machine in the default.
	return storetest.Subject{Store: readOnly{memory.NewController(store)}, Writer: w, Timeout: time.Minute}
}

// readOnly is a cache that takes no writes.
type readOnly struct{ *memory.Controller }

func (readOnly) Create(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) Update(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) UpdateStatus(configstore.Config) (string, error) { return "", configstore.ErrReadOnly }

func (readOnly) Delete(configstore.GroupVersionKind, string, string, *string) error {
	return configstore.ErrReadOnly
}

// fileWriter writes by files, each with one object, in the directories of several
// sources that share a store: a reload looks at all files of its source.
type fileWriter struct {
	configstore.ConfigStore
	dirs    []string
	sources []*file.Source
	// mu makes reading and writing one step.
	mu sync.Mutex
}

// place returns the file of an object and its source.
func (w *fileWriter) place(key configstore.ConfigKey) (string, *file.Source) {
	name := key.Kind.Kind + "_" + key.Namespace + "_" + key.Name + ".yaml"
	i := crc32.ChecksumIEEE([]byte(name)) % uint32(len(w.dirs))
	return filepath.Join(w.dirs[i], name), w.sources[i]
}

func (w *fileWriter) Create(c configstore.Config) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Get(c.GroupVersionKind, c.Name, c.Namespace) != nil {
		return "", configstore.ErrAlreadyExists
	}
	return w.write(c)
}

func (w *fileWriter) Update(c configstore.Config) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Get(c.GroupVersionKind, c.Name, c.Namespace) == nil {
		return "", configstore.ErrNotFound
	}
	return w.write(c)
}

func (w *fileWriter) UpdateStatus(c configstore.Config) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	stored := w.Get(c.GroupVersionKind, c.Name, c.Namespace)
	if stored == nil {
		return "", configstore.ErrNotFound
	}
	changed := *stored
	changed.Status = c.Status
	return w.write(changed)
}

func (w *fileWriter) write(c configstore.Config) (string, error) {
	schema, ok := w.Schemas().Find(c.GroupVersionKind)
	if !ok {
		return "", configstore.ErrUnknownKind
	}
	c.GroupVersionKind = schema.GroupVersionKind
	text, err := manifest.Marshal(c)
	if err != nil {
		return "", errors.Join(configstore.ErrInvalid, err)
	}
	path, source := w.place(c.Key())
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", err
	}
	if err := reload(source); err != nil {
		return "", err
	}
	return w.Get(c.GroupVersionKind, c.Name, c.Namespace).ResourceVersion, nil
}

func (w *fileWriter) Delete(kind configstore.GroupVersionKind, name, namespace string, _ *string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	schema, ok := w.Schemas().Find(kind)
	if !ok {
		return configstore.ErrUnknownKind
	}
	path, source := w.place(configstore.ConfigKey{Kind: schema.GroupVersionKind, Name: name, Namespace: namespace})
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return configstore.ErrNotFound
	}
	return errors.Join(err, reload(source))
}

func reload(source *file.Source) error {
	if err := source.Reload(); err != nil {
		return err
	}
	for _, e := range source.Errors() {
		return e
	}
	return nil
}
