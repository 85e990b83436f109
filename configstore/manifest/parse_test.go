// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// head begins a ServiceEntry whose spec begins on line 4.
const head = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: ns}\n"

func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // problems of the only document
	}{
		{"unknown field", head + "spec:\n  hosts: [a]\n  hostz: [a]\n", []string{"line 6, column 3: spec.hostz: unknown field"}},
		{
			"unknown fields deep down", head + "spec:\n  endpoints:\n  - address: x\n  - {adresz: y, labels: {a.b/c: 5}}\n",
			[]string{
				"line 7, column 6: spec.endpoints[1].adresz: unknown field",
				`line 7, column 33: spec.endpoints[1].labels["a.b/c"]: must be a string, is the number 5; quote it`,
			},
		},
		{"unknown field of the object", head + "specs: {}\n", []string{"line 4, column 1: specs: unknown field"}},
		{
			"unknown field of the metadata", strings.Replace(head, "{name", "{nam: b, name", 1),
			[]string{"line 3, column 12: metadata.nam: unknown field"},
		},
		{
			"unknown field in JSON", "---\n" + `{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",` + "\n" + ` "metadata": {"name": "é"}, "spec": {"x": 1}}`,
			[]string{"line 3, column 38: spec.x: unknown field"},
		},
		{"wrong type", head + "spec:\n  hosts: a\n", []string{`line 5, column 10: spec.hosts: must be a list, is "a"`}},
		{"list for an object", head + "spec: []\n", []string{"line 4, column 7: spec: must be an object, is a list"}},
		{"object for a string", head + "spec: {hosts: [{a: b}]}\n", []string{"line 4, column 16: spec.hosts[0]: must be a string, is an object"}},
		{"null in a list", head + "spec: {hosts: [~]}\n", []string{"line 4, column 16: spec.hosts[0]: must be a string, is null"}},
		{"boolean for a string", head + "spec: {hosts: [on]}\n", []string{"line 4, column 16: spec.hosts[0]: must be a string, is the boolean true; quote it"}},
		{
			"numbers out of range", head + "spec: {ports: [{number: -1}, {number: 4294967296}, {number: 1.5}, {number: 80a}]}\n",
			[]string{
				"line 4, column 25: spec.ports[0].number: must be an integer from 0 to 4294967295, is the number -1",
				"line 4, column 39: spec.ports[1].number: must be an integer from 0 to 4294967295, is the number 4294967296",
				"line 4, column 61: spec.ports[2].number: must be an integer from 0 to 4294967295, is the number 1.5",
				`line 4, column 76: spec.ports[3].number: must be an integer from 0 to 4294967295, is "80a"`,
			},
		},
		{
			"enum", head + "spec: {resolution: STATC, location: true}\n",
			[]string{
				`line 4, column 20: spec.resolution: must be one of NONE, STATIC, DNS, DNS_ROUND_ROBIN, DYNAMIC_DNS, is "STATC"`,
				"line 4, column 37: spec.location: must be one of MESH_EXTERNAL, MESH_INTERNAL, is the boolean true",
			},
		},
		{
			"duration", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{timeout: 5}, {timeout: 5 s}]}\n",
			[]string{
				`line 4, column 25: spec.http[0].timeout: must be a duration such as "1.5s" or "10m", is the number 5`,
				`line 4, column 39: spec.http[1].timeout: must be a duration such as "1.5s" or "10m", is "5 s"`,
			},
		},
		{
			"both of a oneof", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{match: [{uri: {exact: a, prefix: b}}]}]}\n",
			[]string{"line 4, column 41: spec.http[0].match[0].uri.prefix: cannot be given together with exact"},
		},
		{
			"both spellings of a field", head + "spec: {workload_selector: {}, workloadSelector: {}}\n",
			[]string{"line 4, column 31: spec.workloadSelector: is given twice, as workloadSelector and as workload_selector"},
		},
		{"duplicate field", head + "spec: {hosts: [a], hosts: [b]}\n", []string{"line 4, column 20: spec.hosts: is given twice"}},
		{"duplicate label", head + "spec: {workloadSelector: {labels: {1: a, '1': b}}}\n", []string{"line 4, column 42: spec.workloadSelector.labels.1: is given twice"}},
		{
			"labels", strings.Replace(head, "{name", "{labels: {a: 1, b: yes, c: ~, d: []}, annotations: [a], name", 1),
			[]string{
				"line 3, column 24: metadata.labels.a: must be a string, is the number 1; quote it",
				"line 3, column 30: metadata.labels.b: must be a string, is the boolean true; quote it",
				"line 3, column 44: metadata.labels.d: must be a string, is a list",
				"line 3, column 62: metadata.annotations: must be an object, is a list",
			},
		},
		{
			"other metadata", strings.Replace(head, "{name", "{generation: x, creationTimestamp: yesterday, ownerReferences: [{controller: 1, x: 1}], uid: 5, name", 1),
			[]string{
				`line 3, column 24: metadata.generation: must be an integer of 64 bits, is "x"`,
				`line 3, column 46: metadata.creationTimestamp: must be a time such as "2024-01-31T12:00:00Z", is "yesterday"`,
				"line 3, column 88: metadata.ownerReferences[0].controller: must be true or false, is the number 1",
				"line 3, column 91: metadata.ownerReferences[0].x: unknown field",
				"line 3, column 104: metadata.uid: must be a string, is the number 5; quote it",
			},
		},
		{"no name", "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {}\n", []string{"line 3, column 11: metadata.name: is required"}},
		{"no metadata", "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n", []string{"line 1, column 1: metadata.name: is required"}},
		{"no kind", "a: b\n", []string{"line 1, column 1: apiVersion: is required", "line 1, column 1: kind: is required"}},
		{"kind of a wrong type", "apiVersion: v1\nkind: [x]\n", []string{"line 2, column 7: kind: must be a string, is a list"}},
		{"apiVersion with slashes", "apiVersion: a/b/c\nkind: x\n", []string{`line 1, column 13: apiVersion: must be group/version, is "a/b/c"`}},
		{"a string", "hello\n", []string{`line 1, column 1: must be an object, is "hello"`}},
		{"broken", head + "spec: {hosts: [a}\n", []string{"line 4: is not valid YAML: did not find expected ',' or ']'"}},
		{"tab", head + "spec:\n\thosts: [a]\n", []string{"line 5: is not valid YAML: found character that cannot start any token"}},
		{"no UTF-8", head + "# \xff\n", []string{"line 4: is not UTF-8 text"}},
		{"unknown anchor", head + "spec: *x\n", []string{"line 4: is not valid YAML: unknown anchor 'x' referenced"}},
		{
			"status", head + "status: {conditionz: []}\n",
			[]string{"line 4, column 10: status.conditionz: unknown field"},
		},
		{
			"struct", "apiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: a}\nspec: {pluginConfig: {a: .nan}}\n",
			[]string{"line 4, column 26: spec.pluginConfig.a: is no number that JSON can hold: .nan"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := manifest.Parse(istio.Schemas(), []byte(tt.text), manifest.Options{})
			if len(docs) != 1 {
				t.Fatalf("%d documents, want 1: %v", len(docs), docs)
			}
			var e *manifest.Error
			if !errors.As(docs[0].Err, &e) || !errors.Is(e, manifest.ErrMalformed) {
				t.Fatalf("Err = %v, want an *Error that is ErrMalformed", docs[0].Err)
			}
			var got []string
			for _, p := range e.Problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// summary describes the parsed documents of an input, one line per document.
func summary(docs []manifest.Document) []string {
	var out []string
	for _, d := range docs {
		verdict := "ok"
		switch {
		case errors.Is(d.Err, configstore.ErrUnknownKind):
			verdict = "unknown kind"
		case d.Err != nil:
			verdict = "malformed"
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %d:%d %s %s", d.Number, d.Item, d.Line, d.Column, d.Key.Object(), verdict)))
	}
	return out
}

func doc(name string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s}\nspec: {hosts: [a]}\n", name)
}

func TestDocuments(t *testing.T) {
	list := func(kind string, items ...string) string {
		text := "apiVersion: v1\nkind: " + kind + "\nmetadata: {resourceVersion: ''}\nitems:\n"
		for _, item := range items {
			text += "- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") + "\n"
		}
		return text
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"empty documents", "---\n---\n# comment\n---\nnull\n---\n~\n...\n", nil},
		{"one", doc("a"), []string{"1  1:1 ServiceEntry a ok"}},
		{"byte order mark and CRLF", "\ufeff" + strings.ReplaceAll(doc("a")+"---\n"+doc("b"), "\n", "\r\n"), []string{"1  1:1 ServiceEntry a ok", "2  6:1 ServiceEntry b ok"}},
		{"comments and separators", "# top\n\n---\n# a\n" + doc("a") + "--- # b\n\n" + doc("b") + "---", []string{"1  5:1 ServiceEntry a ok", "2  11:1 ServiceEntry b ok"}},
		{"directives", "%YAML 1.1\n---\n" + doc("a") + "...\n%YAML 1.1\n---\n" + doc("b"), []string{"1  3:1 ServiceEntry a ok", "2  10:1 ServiceEntry b ok"}},
		{"separator in text", "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: a\n  annotations:\n    x: |\n      ---\n      y\n", []string{"1  1:1 ServiceEntry a ok"}},
		{
			"broken in the middle", doc("a") + "---\nkind: [\n---\n" + doc("b") + "---\n" + head + "spec: [\n---\n" + doc("c"),
			[]string{
				"1  1:1 ServiceEntry a ok", "2  6:0  malformed", "3  8:1 ServiceEntry b ok",
				"4  16:0 ServiceEntry ns/a malformed", "5  18:1 ServiceEntry c ok",
			},
		},
		{"JSON stream", `{"kind": 5} {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}` + "\n\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"}}`, []string{
			"1  1:1  malformed", "2  1:13 Pod p unknown kind", "3  3:1 Pod q unknown kind",
		}},
		{"flow style that is no JSON", "{apiVersion: v1, kind: Pod, metadata: {name: p}}", []string{"1  1:1 Pod p unknown kind"}},
		{"unknown kinds", "apiVersion: v1\nkind: Pod\n---\napiVersion: networking.istio.io/v7\nkind: ServiceEntry\nmetadata: {name: a}\n", []string{
			"1  1:1  unknown kind", "2  4:1 ServiceEntry a unknown kind",
		}},
		{
			"list", doc("z") + "---\n" + list("List", doc("a"), head+"spec: 5", "5", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}", list("List", doc("b"))),
			[]string{
				"1  1:1 ServiceEntry z ok",
				"2 items[0] 10:3 ServiceEntry a ok", "2 items[1] 14:3 ServiceEntry ns/a malformed", "2 items[2] 18:3  malformed",
				"2 items[3] 19:3 Pod p unknown kind", "2 items[4].items[0] 26:5 ServiceEntry b ok",
			},
		},
		{"empty list", list("List") + "---\napiVersion: v1\nkind: List\nitems: []\n", nil},
		{"list with a mistake", list("List", doc("a")) + "itemz: []\n", []string{"1  1:1  malformed", "1 items[0] 5:3 ServiceEntry a ok"}},
		{
			"list of one kind", strings.Replace(list("ServiceEntryList", "metadata: {name: a}", doc("b")), "v1", "networking.istio.io/v1beta1", 1),
			[]string{"1 items[0] 5:3 ServiceEntry a ok", "1 items[1] 6:3 ServiceEntry b ok"},
		},
		{
			"which object it is", strings.Join([]string{
				"metadata: {name: a}\nkind: ServiceEntry\napiVersion: networking.istio.io/v1alpha3\nspec: {x: {{\n",
				"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  labels:\n    x: y\n  name: b\nspec:\n\tx\n",
				"apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: c\n   namespace: d\n",
				doc("a") + doc("b"),
				head + "spec: [\n" + head,
				strings.Replace(head, "name:", "name: x, name:", 1),
				strings.Replace(head, "a,", "5,", 1),
			}, "---\n"),
			[]string{
				"1  4:0 ServiceEntry a malformed", "2  13:0 ServiceEntry b malformed", "3  19:0  malformed", "4  21:1  malformed",
				"5  34:0  malformed", "6  38:1  malformed", "7  42:1  malformed",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := summary(manifest.Parse(istio.Schemas(), []byte(tt.text), manifest.Options{}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	schemas := configstore.NewSchemasBuilder().
		MustAdd(configstore.Schema{GroupVersionKind: istio.ServiceEntry, Spec: &networking.ServiceEntry{}}).
		MustAdd(configstore.Schema{
			GroupVersionKind: configstore.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"},
			Spec:             &networking.WorkloadEntry{}, ClusterScoped: true,
		}).Build()
	text := doc("a") + "---\n" + head + "spec: {hosts: [b], hostz: [c], ports: [{nummer: 5}]}\nstatus: {x: 1}\nmore: 1\n---\n" +
		"apiVersion: example.com/v1\nkind: Zone\nmetadata: {name: z, namespace: ns}\n---\n" +
		"apiVersion: example.com/v1\nkind: Zone\nmetadata: {name: x}\n"
	strict := manifest.Options{Domain: "cluster.local", DefaultNamespace: "default"}
	want := []string{"1  1:1 ServiceEntry default/a ok", "2  6:1 ServiceEntry ns/a malformed", "3  13:1 Zone z malformed", "4  17:1 Zone x ok"}
	docs := manifest.Parse(schemas, []byte(text), strict)
	if diff := cmp.Diff(want, summary(docs)); diff != "" {
		t.Errorf("strict (-want +got):\n%s", diff)
	}
	lenient := strict
	lenient.Lenient = true
	configs, err := manifest.ParseAll(schemas, []byte(text), lenient)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range configs {
		got = append(got, c.Key().Object()+"."+c.Domain)
	}
	want = []string{"ServiceEntry default/a.cluster.local", "ServiceEntry ns/a.cluster.local", "Zone z.cluster.local", "Zone x.cluster.local"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lenient (-want +got):\n%s", diff)
	}
	dropped := fmt.Sprint(configstore.Unread(configs[1].Spec))
	if want := "[spec.hostz: is not known spec.ports[0].nummer: is not known]"; dropped != want {
		t.Errorf("lenient reading drops %s, want %s", dropped, want)
	}
	unmarked := proto.CloneOf(configs[1].Spec.(*networking.ServiceEntry))
	unmarked.ProtoReflect().SetUnknown(nil)
	unmarked.Ports[0].ProtoReflect().SetUnknown(nil)
	if spec := (&networking.ServiceEntry{Hosts: []string{"b"}, Ports: []*networking.ServicePort{{}}}); !proto.Equal(unmarked, spec) || configs[1].Status != nil {
		t.Errorf("lenient spec = %v, status %v, want %v without status", configs[1].Spec, configs[1].Status, spec)
	}
	for _, broken := range []string{head + "spec: {hosts: a}\n", head + "spec: {hosts: [], hosts: []}\n"} {
		if _, err := manifest.ParseAll(schemas, []byte(broken), lenient); !errors.Is(err, manifest.ErrMalformed) {
			t.Errorf("lenient reading of %q = %v, want ErrMalformed", broken, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	text := samples(t, istio.ServiceEntry)
	configs, err := manifest.ParseAll(istio.Schemas(), []byte(text), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := configstore.Meta{
		GroupVersionKind:  istio.ServiceEntry,
		Name:              "billing",
		Namespace:         "shop",
		UID:               "2f0c9a36-1111-4222-8333-444455556666",
		ResourceVersion:   "9007199254740993",
		Generation:        3,
		CreationTimestamp: time.Date(2024, 3, 1, 12, 30, 45, 0, time.UTC),
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry"}` + "\n",
		},
		OwnerReferences: []configstore.OwnerReference{{
			APIVersion: "apps.example.com/v1", Kind: "Application", Name: "shop", UID: "6a1f3c5e-0a51-4b5a-9a0e-3d2f3f1f7f10",
			Controller: true, BlockOwnerDeletion: true,
		}},
	}
	if diff := cmp.Diff(want, configs[2].Meta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestPosition(t *testing.T) {
	text := "# above\n---\n" + head + "spec:\n  ports:\n  - {number: 1}\n  - name: x\n    target_port: 5\n  workloadSelector:\n    labels: {a.b/c: d}\n"
	d := manifest.Parse(istio.Schemas(), []byte(text), manifest.Options{})[0]
	for _, tt := range []struct {
		field        string
		line, column int
	}{
		{"", 3, 1},
		{"spec", 6, 1},
		{"spec.ports[0].number", 8, 6},
		{"spec.ports[1].targetPort", 10, 5},
		{"spec.ports[1].protocol", 9, 5},
		{"spec.ports[7].number", 7, 3},
		{`spec.workloadSelector.labels["a.b/c"]`, 12, 14},
		{"spec.workloadSelector.labels[a.b/c]", 12, 14},
		{"metadata.name", 5, 12},
		{"status.x", 3, 1},
		{"]]..[", 3, 1},
	} {
		if line, column := d.Position(tt.field); line != tt.line || column != tt.column {
			t.Errorf("Position(%q) = %d, %d, want %d, %d", tt.field, line, column, tt.line, tt.column)
		}
	}
}
