// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// FuzzParse states what holds for every input: nothing panics, every document
// is an object or an error of the promised type, read at once or text by text,
// and an object survives both output formats, which are stable.
func FuzzParse(f *testing.F) {
	samples, err := filepath.Glob("testdata/kinds/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range samples {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
	}
	for _, s := range []string{
		"", "---\n---\n", "a: &a [*a]", "{}", "[]", "%YAML 1.1\n---\nkind: x\n...\n", "? [a]\n: b\n",
		"apiVersion: v1\nkind: List\nitems:\n- {}\n- kind: List\n  apiVersion: v1\n  items: [5]\n",
		`{"apiVersion":"security.istio.io/v1","kind":"PeerAuthentication","metadata":{"name":"a"}}{"kind":1}`,
		"apiVersion: networking.istio.io/v1\nkind: EnvoyFilter\nmetadata: {name: a, labels: {y: 'y', \"a\\nb\": \"\\0\"}}\n" +
			"spec: {priority: 1e1, configPatches: [{patch: {value: {a: -0, b: [1e3, {}, [[]], null, \"x\\n y\\n\"]}}}]}\n",
		"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: b\nspec:\n  hosts: [a\n",
		"---\n{\n---\n{\n", "{}\n{}\n {\"a\": \"}\"}\n", "{a: '}'}\n{}\n", "a: &a {<<: *a}", "a: &a {k: v}\nb: &b {<<: [*a, *a]}\n<<: *b\n",
		"apiVersion: networking.istio.io/v2\nkind: ServiceEntry\n", "apiVersion: apps/v1\nkind: Deployment\nspec: {{\n", "kind: List\napiVersion: v1\nitems: &a [*a]\n",
	} {
		f.Add([]byte(s), true)
	}
	schemas := istio.Schemas()
	f.Fuzz(func(t *testing.T, data []byte, lenient bool) {
		opts := manifest.Options{Lenient: lenient, DefaultNamespace: "default", Domain: "cluster.local"}
		docs := manifest.Parse(schemas, data, opts)
		checkTexts(t, data, opts, docs)
		for _, doc := range docs {
			if doc.Err != nil {
				checkError(t, doc)
				continue
			}
			if doc.Key != doc.Config.Key() || doc.Line < 1 || doc.Foreign {
				t.Fatalf("key %v, line %d of %v", doc.Key, doc.Line, doc.Config.Key())
			}
			checkRoundTrip(t, schemas, doc.Config, opts)
		}
	})
}

func checkError(t *testing.T, doc manifest.Document) {
	t.Helper()
	var e *manifest.Error
	if !errors.As(doc.Err, &e) || len(e.Problems) == 0 {
		t.Fatalf("error is %T with no problems: %v", doc.Err, doc.Err)
	}
	if errors.Is(doc.Err, manifest.ErrMalformed) == errors.Is(doc.Err, configstore.ErrUnknownKind) {
		t.Fatalf("error matches both or none of its sentinels: %v", doc.Err)
	}
	if (doc.Key == configstore.ConfigKey{}) != (doc.Key.Name == "") {
		t.Fatalf("key is half empty: %v", doc.Key)
	}
}

// checkRoundTrip writes a config in both formats and reads it back.
func checkRoundTrip(t *testing.T, schemas configstore.Schemas, want configstore.Config, opts manifest.Options) {
	t.Helper()
	for name, marshal := range map[string]func(configstore.Config) ([]byte, error){
		"YAML": manifest.Marshal, "JSON": manifest.MarshalJSON,
	} {
		text, err := marshal(want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		opts.Lenient = false
		got, err := manifest.ParseAll(schemas, text, opts)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, text)
		}
		if len(got) != 1 || !got[0].Equal(want) {
			t.Fatalf("%s changed\n%+v\nto\n%+v by\n%s", name, want, got, text)
		}
		again, err := marshal(got[0])
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s is not stable: %v\n%s\nthen\n%s", name, err, text, again)
		}
	}
}

// FuzzMarshalText: any key and any text, at any place and of any length, survive both output
// formats.
func FuzzMarshalText(f *testing.F) {
	for _, s := range []string{
		"", "a", "yes", "1", "1e3", "12:30", "2024-01-31", "~", "<<", "=", "a: b", "a #b", "- a", "? a", "\ta\nb", "a\n", "a\n\n", "\na", " a\nb", "a \nb",
		"a\n b\n\tc\n", "a\r\nb", "\u0085", "\u2028", "\ufeffa", "\u00a0", "\x00", "\x7f", "|", "|-", "é\n", "'", `"`, `\`, "{}", "[", "*a", "&a", "!a", "%a", "@a", "`a", "---", "...\n",
		strings.Repeat("long ", 100), strings.Repeat("é", 200), "a\n" + strings.Repeat("b ", 300) + "c",
	} {
		f.Add(s, "value", 1)
		f.Add("key", s, 70)
	}
	schemas := istio.Schemas()
	f.Fuzz(func(t *testing.T, key, text string, depth int) {
		if !utf8.ValidString(key) || !utf8.ValidString(text) {
			t.Skip("not UTF-8")
		}
		value := structpb.NewStringValue(text)
		for range min(max(depth, 0), 70) {
			nested := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{key: value}})
			value = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{nested, structpb.NewStringValue(text)}})
		}
		c := configstore.Config{
			Meta: configstore.Meta{GroupVersionKind: istio.EnvoyFilter, Name: "a", Namespace: "default", Domain: "cluster.local"},
			Spec: &networking.EnvoyFilter{ConfigPatches: []*networking.EnvoyFilter_EnvoyConfigObjectPatch{{
				Patch: &networking.EnvoyFilter_Patch{Value: &structpb.Struct{Fields: map[string]*structpb.Value{key: value}}},
			}}},
		}
		checkRoundTrip(t, schemas, c, manifest.Options{Domain: "cluster.local"})
	})
}
