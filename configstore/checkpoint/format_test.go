// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	networking "istio.io/api/networking/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

func fileOf(tb testing.TB, objects ...configstore.Config) []byte {
	tb.Helper()
	data, err := os.ReadFile(saved(tb, objects...))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// resealed returns a file with a valid checksum of its content.
func resealed(data []byte) []byte {
	body := slices.Clone(data[:len(data)-checksumSize])
	return binary.LittleEndian.AppendUint64(body, xxhash.Sum64(body))
}

// TestEveryDamageIsFound: a file with any changed byte, or truncated anywhere, is rejected as a
// whole.
func TestEveryDamageIsFound(t *testing.T) {
	data := fileOf(t, entry("a", "1"), entry("b", "1"))
	if objects, _, err := read(data, istio.Schemas()); err != nil || len(objects) != 2 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	known := func(err error) bool {
		return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion)
	}
	for i := range data {
		if objects, _, err := read(data[:i], istio.Schemas()); !known(err) || objects != nil {
			t.Errorf("%d of %d bytes: %d objects, error %v", i, len(data), len(objects), err)
		}
		damaged := slices.Clone(data)
		damaged[i] ^= 0x10
		if objects, _, err := read(damaged, istio.Schemas()); !known(err) || objects != nil {
			t.Errorf("byte %d changed: %d objects, error %v", i, len(objects), err)
		}
	}
	if _, _, err := read(append(slices.Clone(data), 0), istio.Schemas()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestRefused: each unusable file is an error of its own, its content is ignored, and it is
// replaced by the first save.
func TestRefused(t *testing.T) {
	good := fileOf(t, entry("a", "1"), entry("b", "1"))
	future := slices.Clone(good)
	future[len(magic)]++
	other := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: istio.ServiceEntry, Plural: "serviceentries", Spec: &networking.WorkloadEntry{},
	}).Build()
	for name, tt := range map[string]struct {
		data    []byte
		schemas configstore.Schemas
		want    error
	}{
		"empty":        {nil, istio.Schemas(), ErrForeign},
		"foreign":      {[]byte("apiVersion: v1\nkind: ConfigMap\n"), istio.Schemas(), ErrForeign},
		"truncated":    {good[:len(good)-100], istio.Schemas(), ErrCorrupt},
		"future":       {resealed(future), istio.Schemas(), ErrVersion},
		"unknown kind": {good, configstore.Schemas{}, ErrKind},
		"other type":   {good, other, ErrKind},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := read(tt.data, tt.schemas); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			path := filepath.Join(t.TempDir(), "checkpoint")
			if err := os.WriteFile(path, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if name == "unknown kind" || name == "other type" {
				return // newSource has other schemas
			}
			s := newSource(t, false, entry("c", "1"))
			c := New(s, path)
			c.Drain()
			if !errors.Is(c.Status().Refused, tt.want) || c.Status().Stale || c.HasSynced() {
				t.Errorf("synced %t, %+v", c.HasSynced(), c.Status())
			}
			expectContents(t, "a file that is refused", c, "c 1")
			s.synced = true
			c.Drain()
			if err := c.Save(); err != nil {
				t.Fatal(err)
			}
			expectFile(t, "the file after", path, "c 1")
		})
	}
	t.Run("directory", func(t *testing.T) {
		if c := New(newSource(t, false), t.TempDir()); c.Status().Refused == nil {
			t.Errorf("a directory was loaded: %+v", c.Status())
		}
	})
}

// FuzzRead: no content makes reading panic, or take much more than its size.
func FuzzRead(f *testing.F) {
	f.Add(fileOf(f, entry("a", "1"))[headerSize:])
	f.Add([]byte{})
	header := fileOf(f)[:headerSize]
	f.Fuzz(func(t *testing.T, body []byte) {
		data := append(slices.Clone(header), body...)
		data = binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data))
		if objects, _, err := read(data, istio.Schemas()); err != nil && objects != nil {
			t.Errorf("%d objects with error %v", len(objects), err)
		}
	})
}
