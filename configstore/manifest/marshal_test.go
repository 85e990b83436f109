// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

func TestMarshal(t *testing.T) {
	c := configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: istio.ServiceEntry, Name: "db", Namespace: "shop", Domain: "cluster.local",
			Labels:            map[string]string{"version": "1.10", "app": "db"},
			Annotations:       map[string]string{"note": "two\nlines\n", "example.com/on": "yes"},
			CreationTimestamp: time.Date(2024, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600)),
			ResourceVersion:   "7", Generation: 2,
		},
		Spec: &networking.ServiceEntry{
			Hosts:      []string{"*.db.example.com"},
			Ports:      []*networking.ServicePort{{Number: 5432, Name: "tcp", Protocol: "TCP", TargetPort: 15432}},
			Resolution: networking.ServiceEntry_STATIC,
			Endpoints:  []*networking.WorkloadEntry{{Address: "10.0.0.1", Locality: "eu/eu-1", Ports: map[string]uint32{"tcp": 1}}},
		},
		Status: &networking.ServiceEntryStatus{},
	}
	wantYAML := `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  annotations:
    example.com/on: "yes"
    note: |
      two
      lines
  creationTimestamp: "2024-01-31T12:00:00Z"
  generation: 2
  labels:
    app: db
    version: "1.10"
  name: db
  namespace: shop
  resourceVersion: "7"
spec:
  endpoints:
  - address: 10.0.0.1
    locality: eu/eu-1
    ports:
      tcp: 1
  hosts:
  - "*.db.example.com"
  ports:
  - name: tcp
    number: 5432
    protocol: TCP
    targetPort: 15432
  resolution: STATIC
status: {}
`
	text, err := manifest.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantYAML, string(text)); diff != "" {
		t.Errorf("YAML (-want +got):\n%s", diff)
	}
	if text, err = manifest.MarshalJSON(c); err != nil {
		t.Fatal(err)
	}
	wantJSON := `{
    "apiVersion": "networking.istio.io/v1",
    "kind": "ServiceEntry",
    "metadata": {
        "annotations": {
            "example.com/on": "yes",
            "note": "two\nlines\n"
        },
`
	if !strings.HasPrefix(string(text), wantJSON) {
		t.Errorf("JSON = %s, want it to begin with %s", text, wantJSON)
	}
}

func TestMarshalErrors(t *testing.T) {
	good := func() configstore.Config {
		return configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: istio.ServiceEntry, Name: "a"},
			Spec: &networking.ServiceEntry{Hosts: []string{"a"}},
		}
	}
	for want, spoil := range map[string]func(c *configstore.Config){
		"kind is required":              func(c *configstore.Config) { c.GroupVersionKind = configstore.GroupVersionKind{} },
		"metadata.name is required":     func(c *configstore.Config) { c.Name = "" },
		"spec is required":              func(c *configstore.Config) { c.Spec = nil },
		"metadata.uid is not UTF-8":     func(c *configstore.Config) { c.UID = "\xff" },
		"metadata.labels has a key":     func(c *configstore.Config) { c.Labels = map[string]string{"\xff": ""} },
		"metadata.ownerReferences[0].k": func(c *configstore.Config) { c.OwnerReferences = []configstore.OwnerReference{{Kind: "\xff"}} },
		"metadata.creationTimestamp":    func(c *configstore.Config) { c.CreationTimestamp = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"spec: ":                        func(c *configstore.Config) { c.Spec = &networking.ServiceEntry{Hosts: []string{"\xff"}} },
		"status: ": func(c *configstore.Config) {
			c.Status = &anypb.Any{TypeUrl: "type.example.com/unknown", Value: []byte{1}}
		},
	} {
		c := good()
		spoil(&c)
		for name, marshal := range map[string]func(configstore.Config) ([]byte, error){"Marshal": manifest.Marshal, "MarshalJSON": manifest.MarshalJSON} {
			if text, err := marshal(c); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "marshal ") {
				t.Errorf("%s = %q, %v, want an error about %q", name, text, err, want)
			}
		}
	}
}
