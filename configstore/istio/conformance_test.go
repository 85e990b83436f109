// SPDX-License-Identifier: Apache-2.0

package istio_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
)

// scenario is the part of a recorded case that this test reads: the written objects, and whether
// Istio accepted them. The format is described in testdata/conformance/README.md.
type scenario struct {
	Options struct {
		SkipValidation bool `yaml:"skipValidation"`
	} `yaml:"options"`
	Initial string `yaml:"initial"`
	Steps   []struct {
		Apply string `yaml:"apply"`
		Store struct {
			Op     string `yaml:"op"`
			Config string `yaml:"config"`
		} `yaml:"store"`
	} `yaml:"steps"`
}

type golden struct {
	Steps []struct {
		// Index is the position of the step, or -1 for the initial objects.
		Index   int
		Results []struct {
			Object, Outcome string
			Messages        []string
		}
	}
}

// TestRecordedOutcomes: an object is refused if and only if Istio refused it.
func TestRecordedOutcomes(t *testing.T) {
	dir := os.Getenv("PILOTKIT_CONFORMANCE")
	if dir == "" {
		dir = filepath.Join("..", "..", "testdata", "conformance")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s (%v)", dir, err)
	}
	checked, refused := 0, 0
	for _, file := range files {
		var s scenario
		decodeYAML(t, file, &s)
		if s.Options.SkipValidation {
			continue
		}
		var g golden
		decodeJSON(t, strings.TrimSuffix(file, ".yaml")+".golden.json", &g)
		for _, c := range decodeObjects(t, s.Initial) {
			checked++
			if _, err := check(c); err != nil {
				t.Errorf("%s: initial: %v", file, err)
			}
		}
		for _, observed := range g.Steps {
			i := observed.Index
			if i < 0 {
				continue
			}
			step := s.Steps[i]
			objects := decodeObjects(t, step.Apply)
			if step.Store.Op == "create" || step.Store.Op == "update" {
				objects = decodeObjects(t, step.Store.Config)
			}
			for n, c := range objects {
				if c.Spec == nil {
					continue
				}
				result := observed.Results[n]
				checked++
				_, err := check(c)
				switch {
				case result.Outcome == "invalid" && err == nil:
					t.Errorf("%s: step %d: %s was accepted; Istio says %q", file, i, result.Object, result.Messages)
				case result.Outcome == "invalid":
					refused++
				case result.Outcome == "ok" && err != nil:
					t.Errorf("%s: step %d: Istio accepts %s; we say %v", file, i, result.Object, err)
				}
			}
		}
	}
	t.Logf("%d objects, %d of them refused", checked, refused)
	if refused == 0 {
		t.Error("no recorded refusal was seen: the test proves nothing")
	}
}

func check(c configstore.Config) ([]configstore.Violation, error) {
	schema, _ := istio.Schemas().Find(c.GroupVersionKind)
	return schema.Check(c)
}

// decodeObjects reads Kubernetes-style documents. Objects of kinds that are not
// Istio's have no spec.
func decodeObjects(t *testing.T, documents string) []configstore.Config {
	t.Helper()
	var out []configstore.Config
	for decoder := yaml.NewDecoder(strings.NewReader(documents)); ; {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
			Metadata   struct {
				Name, Namespace     string
				Labels, Annotations map[string]string
			} `yaml:"metadata"`
			Spec map[string]any `yaml:"spec"`
		}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatalf("%v in\n%s", err, documents)
		}
		group, version, _ := strings.Cut(object.APIVersion, "/")
		kind := configstore.GroupVersionKind{Group: group, Version: version, Kind: object.Kind}
		schema, ok := istio.Schemas().Find(kind)
		if !ok {
			out = append(out, configstore.Config{Meta: configstore.Meta{GroupVersionKind: kind}})
			continue
		}
		text, err := json.Marshal(object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		spec := schema.NewSpec()
		if err := protojson.Unmarshal(text, spec); err != nil && !bytes.Equal(text, []byte("null")) {
			t.Fatalf("%v in\n%s", err, documents)
		}
		out = append(out, configstore.Config{
			Meta: configstore.Meta{
				GroupVersionKind: schema.GroupVersionKind,
				Name:             object.Metadata.Name,
				Namespace:        object.Metadata.Namespace,
				Labels:           object.Metadata.Labels,
				Annotations:      object.Metadata.Annotations,
			},
			Spec: spec,
		})
	}
}

func decodeYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func decodeJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
