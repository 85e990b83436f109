// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// checkTexts checks the invariants of the texts of every input: they follow each other without a
// gap, and reading them one by one gives the documents of the input.
func checkTexts(t *testing.T, data []byte, opts manifest.Options, want []manifest.Document) {
	t.Helper()
	texts, err := manifest.Texts(istio.Schemas(), data, opts)
	if err != nil {
		t.Fatal(err)
	}
	var whole []byte
	var got []manifest.Document
	documents, lines := 0, 0
	for _, text := range texts {
		if text.Lines != lines {
			t.Fatalf("Lines = %d after %d lines", text.Lines, lines)
		}
		docs, count := text.Parse()
		for _, d := range docs {
			if d.Number > count {
				t.Fatalf("document %d of %d", d.Number, count)
			}
			d.Number += documents
			d.Line += text.Lines
			got = append(got, d)
		}
		documents += count
		lines += bytes.Count(text.Bytes, []byte("\n"))
		whole = append(whole, text.Bytes...)
	}
	if !bytes.Equal(whole, bytes.TrimPrefix(data, []byte("\ufeff"))) {
		t.Fatalf("the texts make %q of %q", whole, data)
	}
	if diff := cmp.Diff(summary(want), summary(got)); diff != "" {
		t.Fatalf("read at once and text by text (-want +got):\n%s", diff)
	}
}

func TestTexts(t *testing.T) {
	object := `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"é\"'}{"},` + "\n" + `"spec":{}}`
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"documents", "# top\n---\na: 1\n--- # b\nb: 2\n...\nc: 3", []string{"# top\n---\na: 1\n", "--- # b\nb: 2\n...\n", "c: 3"}},
		{"empty documents", "---\n---\n---\n", []string{"---\n", "---\n", "---\n"}},
		{"JSON objects", object + "\n\n " + object + "\n", []string{object + "\n\n", " " + object + "\n"}},
		{"JSON objects behind a marker", "---\n" + object + "\n" + object + "\n---\n" + object, []string{"---\n" + object + "\n", object + "\n", "---\n" + object}},
		{"JSON objects on one line", object + object, []string{object + object}},
		{"no JSON after all", "{a: '}\n{'}\n", []string{"{a: '}\n{'}\n"}},
		{"a comment in the way", "{a: b # }\n}\n", []string{"{a: b # }\n}\n"}},
		{"flow style", "{a: b}\n{c: d}\n", []string{"{a: b}\n{c: d}\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			texts, err := manifest.Texts(istio.Schemas(), []byte(tt.text), manifest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, text := range texts {
				got = append(got, string(text.Bytes))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("texts (-want +got):\n%s", diff)
			}
			checkTexts(t, []byte(tt.text), manifest.Options{}, manifest.Parse(istio.Schemas(), []byte(tt.text), manifest.Options{}))
		})
	}
}

func TestForeign(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		foreign    bool
		message    string
	}{
		{"Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", true, "unknown kind apps/v1/Deployment"},
		{"Service", "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", true, "unknown kind v1/Service"},
		{"Gateway API", "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: a}\n", true, "unknown kind gateway.networking.k8s.io/v1/Gateway"},
		{"Kustomization", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", true, "unknown kind"},
		{"Chart.yaml", "apiVersion: v2\nname: bookinfo\nversion: 1.0.0\n", true, "kind: is required"},
		{"values.yaml", "replicaCount: 1\nimage: {repository: nginx}\n", true, "apiVersion: is required"},
		{"values.yaml with a kind", "kind: Deployment\nreplicas: 1\n", true, "apiVersion: is required"},
		{"package.json", `{"name": "x", "dependencies": {"a": "^1.0.0"}}`, true, "apiVersion: is required"},
		{"a list", "- a\n- b\n", true, "must be an object"},
		{"text", "hello\n", true, "must be an object"},
		{"broken Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: {{ .Values.replicas }}\n", true, "unknown kind apps/v1/Deployment"},
		{"Deployment of a chart", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"x\" . }}\nspec: {\n", true, "unknown kind apps/v1/Deployment"},
		{"mistyped kind", "apiVersion: networking.istio.io/v1\nkind: ServiceEntri\nmetadata: {name: a}\n", false, "unknown kind networking.istio.io/v1/ServiceEntri: did you mean ServiceEntry?"},
		{"kind of a group beside", "apiVersion: rbac.istio.io/v1alpha1\nkind: ServiceRole\nmetadata: {name: a}\n", false, "unknown kind rbac.istio.io/v1alpha1/ServiceRole"},
		{"unknown version", "apiVersion: networking.istio.io/v1beta2\nkind: ServiceEntry\nmetadata: {name: a}\n", false, "unknown kind networking.istio.io/v1beta2/ServiceEntry: ServiceEntry has the versions v1, v1alpha3, v1beta1"},
		{"no kind", "apiVersion: networking.istio.io/v1\nmetadata: {name: a}\n", false, "kind: is required"},
		{"no apiVersion", "kind: ServiceEntry\nmetadata: {name: a}\n", false, "apiVersion: is required"},
		{"broken", "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nspec: [\n", false, "is not valid YAML"},
		{"broken, of what is not known", "a: [\n", false, "is not valid YAML"},
		{"item without a kind", "apiVersion: v1\nkind: List\nitems: [{a: b}]\n", false, "apiVersion: is required"},
		{"unknown field", doc("a") + "more: 1\n", false, "more: unknown field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := manifest.Options{DefaultNamespace: "default"}
			docs := manifest.Parse(istio.Schemas(), []byte(tt.text), opts)
			if len(docs) != 1 || docs[0].Err == nil || docs[0].Foreign != tt.foreign || !strings.Contains(docs[0].Err.Error(), tt.message) {
				t.Errorf("got %+v, want one document, foreign %t, with %q", docs, tt.foreign, tt.message)
			}
		})
	}
	// Sibling groups have more than a top-level domain in common.
	other := []byte("apiVersion: other.com/v1\nkind: Zone\nmetadata: {name: a}\n")
	schemas := configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"}, Spec: &structpb.Struct{},
	}).Build()
	if docs := manifest.Parse(schemas, other, manifest.Options{}); !docs[0].Foreign {
		t.Error("other.com is taken for a group beside example.com")
	}
	// Whether objects of an unknown kind have a namespace is not known.
	docs := manifest.Parse(istio.Schemas(), []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"), manifest.Options{DefaultNamespace: "default"})
	if docs[0].Key.Object() != "Namespace a" {
		t.Errorf("Key is %q, want Namespace a", docs[0].Key.Object())
	}
	docs = manifest.Parse(istio.Schemas(), []byte(doc("a")), manifest.Options{})
	if docs[0].Foreign {
		t.Error("a good object is foreign")
	}
}
