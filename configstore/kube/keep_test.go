// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/histories"
)

// TestKeepsUnknown: unknown fields stay as long as the value that contains them remains, by the
// matching that the package comment describes.
func TestKeepsUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		message              proto.Message // an empty one
		stored, change, want string
	}{
		"Top": {
			&networking.ServiceEntry{},
			`{"hosts":["a"],"futureField":{"x":[1,{"y":null}]}}`, `{"hosts":["b"]}`,
			`{"hosts":["b"],"futureField":{"x":[1,{"y":null}]}}`,
		},
		"NumbersAsTheyAre": {
			&networking.ServiceEntry{},
			`{"hosts":["a"],"future":[9007199254740993,1e400,1.50]}`, `{"hosts":["b"]}`,
			`{"hosts":["b"],"future":[9007199254740993,1e400,1.50]}`,
		},
		"Nested": {
			&networking.DestinationRule{},
			`{"host":"a","trafficPolicy":{"future":1,"tls":{"mode":"SIMPLE","future":2},"connectionPool":{"future":3}}}`,
			`{"host":"a","trafficPolicy":{"tls":{"mode":"MUTUAL"}}}`,
			`{"host":"a","trafficPolicy":{"future":1,"tls":{"mode":"MUTUAL","future":2}}}`,
		},
		"NameInSnakeCase": {
			&networking.DestinationRule{},
			`{"host":"a","traffic_policy":{"future":1}}`, `{"host":"b","trafficPolicy":{}}`,
			`{"host":"b","trafficPolicy":{"future":1}}`,
		},
		"ListByEquality": {
			&networking.VirtualService{},
			`{"http":[{"timeout":"1s","future":1},{"timeout":"2s","future":2},{"timeout":"3s","future":3}]}`,
			`{"http":[{"timeout":"3s"},{"timeout":"9s"},{"timeout":"1s"},{"timeout":"2s"}]}`,
			`{"http":[{"timeout":"3s","future":3},{"timeout":"9s"},{"timeout":"1s","future":1},{"timeout":"2s","future":2}]}`,
		},
		"ListByName": {
			&networking.ServiceEntry{},
			`{"ports":[{"name":"a","number":1,"future":1},{"name":"b","number":2,"future":2}]}`,
			`{"ports":[{"name":"b","number":3},{"name":"c","number":4},{"name":"a","number":5}]}`,
			`{"ports":[{"name":"b","number":3,"future":2},{"name":"c","number":4},{"name":"a","number":5,"future":1}]}`,
		},
		"ListByNumber": {
			&networking.ServiceEntry{},
			`{"ports":[{"name":"a","number":1,"future":1},{"name":"b","number":2,"future":2}]}`,
			`{"ports":[{"name":"z","number":2}]}`,
			`{"ports":[{"name":"z","number":2,"future":2}]}`,
		},
		"ListByMessage": {
			&networking.VirtualService{},
			`{"http":[{"route":[{"destination":{"host":"a"},"weight":1,"future":1},{"destination":{"host":"b"},"future":2}]}]}`,
			`{"http":[{"route":[{"destination":{"host":"b"},"weight":7}]}]}`,
			`{"http":[{"route":[{"destination":{"host":"b"},"weight":7,"future":2}]}]}`,
		},
		"ListByPosition": {
			&networking.VirtualService{},
			`{"http":[{"timeout":"1s","future":1},{"timeout":"2s","future":2}]}`,
			`{"http":[{"timeout":"3s"},{"timeout":"2s","delegate":{"name":"d"}}]}`,
			`{"http":[{"timeout":"3s","future":1},{"timeout":"2s","delegate":{"name":"d"},"future":2}]}`,
		},
		"NoMatch": {
			&networking.VirtualService{},
			`{"http":[{"timeout":"1s","future":1}]}`, `{"http":[{"timeout":"3s"},{"timeout":"2s"}]}`,
			`{"http":[{"timeout":"3s"},{"timeout":"2s"}]}`,
		},
		"Map": {
			&networking.WorkloadGroup{},
			`{"template":{},"metadata":{"labels":{"a":"b"},"future":1}}`, `{"template":{},"metadata":{"labels":{"c":"d"}}}`,
			`{"template":{},"metadata":{"labels":{"c":"d"},"future":1}}`,
		},
		"ValueOfEnum": {
			&networking.ServiceEntry{}, `{"resolution":"FUTURE"}`, `{"hosts":["a"]}`, `{"hosts":["a"],"resolution":"FUTURE"}`,
		},
		"ValueOfEnumReplaced": {
			&networking.ServiceEntry{}, `{"resolution":"FUTURE"}`, `{"resolution":"DNS"}`, `{"resolution":"DNS"}`,
		},
		"PartsThatCannotBeDecoded": {
			&networking.ServiceEntry{},
			`{"hosts":"a string","ports":[{"name":"a","future":1},{"name":{}}],"future":2}`, `{"hosts":["a"],"ports":[{"name":"x"},{"name":"a"},{"name":"y"}]}`,
			`{"hosts":["a"],"ports":[{"name":"x"},{"name":"a","future":1},{"name":"y"}],"future":2}`,
		},
		"Gone": {
			&networking.DestinationRule{}, `{"host":"a","trafficPolicy":{"future":1}}`, `{"host":"a"}`, `{"host":"a"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := test.message.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal([]byte(test.change), next); err != nil {
				t.Fatal(err)
			}
			got, err := kube.Rewrite(json.RawMessage(test.stored), leniently(test.message, test.stored), next)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, test.want), parsed(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeepsUnknownOfOtherSpellings: elements are compared by their decoded values, as the cache has
// them.
func TestKeepsUnknownOfOtherSpellings(t *testing.T) {
	read := func(text string) proto.Message { return leniently(&networking.VirtualService{}, text) }
	got, err := kube.Rewrite(json.RawMessage(`{"http":[{"timeout":"1000ms","future":1},{"timeout":"2m","future":2}]}`),
		read(`{"http":[{"timeout":"1s"},{"timeout":"120s"}]}`), read(`{"http":[{"timeout":"120s"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parsed(t, `{"http":[{"timeout":"120s","future":2}]}`), parsed(t, string(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// leniently returns the known fields of a text, or nil.
func leniently(empty proto.Message, text string) proto.Message {
	m := empty.ProtoReflect().New().Interface()
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(text), m) != nil {
		return nil
	}
	return m
}

// parsed returns a text as values, numbers as their text.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	var walk func(text json.RawMessage) any
	walk = func(text json.RawMessage) any {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case text[0] == '{' && json.Unmarshal(text, &object) == nil:
			out := map[string]any{}
			for name, value := range object {
				out[name] = walk(value)
			}
			return out
		case text[0] == '[' && json.Unmarshal(text, &list) == nil:
			out := []any{}
			for _, item := range list {
				out = append(out, walk(item))
			}
			return out
		default:
			return string(text)
		}
	}
	var compact json.RawMessage
	if err := json.Unmarshal([]byte(text), &compact); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	maps.Copy(out, walk(compact).(map[string]any))
	return out
}

// TestKeepsOwners: an owner that stays keeps its stored fields.
func TestKeepsOwners(t *testing.T) {
	const stored = `[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":false,"blockOwnerDeletion":false,"future":1},` +
		`{"apiVersion":"v1","kind":"Node","name":"n","uid":"2","controller":true}]`
	pod := configstore.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "1"}
	node := configstore.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "2", Controller: true}
	free := node
	free.Controller = false
	other := configstore.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "o", UID: "3"}
	old := []configstore.OwnerReference{pod, node}
	for name, test := range map[string]struct {
		next []configstore.OwnerReference
		want string
	}{
		"Same":    {old, stored},
		"Added":   {[]configstore.OwnerReference{other, pod}, `[{"apiVersion":"v1","kind":"Node","name":"o","uid":"3"},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"1","controller":false,"blockOwnerDeletion":false,"future":1}]`},
		"Changed": {[]configstore.OwnerReference{free}, `[{"apiVersion":"v1","kind":"Node","name":"n","uid":"2","controller":false}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kube.RewriteOwners(json.RawMessage(stored), old, test.next)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, `{"o":`+test.want+`}`), parsed(t, `{"o":`+string(got)+`}`)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// marks matches the values of unknown fields in random objects.
var marks = regexp.MustCompile(`mark-\d+-`)

// testRandomChange creates a random object of a random kind with unknown fields at all depths,
// changes it, and expects exactly the unknown fields of the remaining values.
func testRandomChange(t *testing.T, seed uint64) {
	t.Helper()
	kinds := istio.Schemas().All()
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), marks: map[proto.Message]string{}, former: map[proto.Message]string{}}
	m := kinds[g.IntN(len(kinds))].NewSpec()
	g.fill(m.ProtoReflect(), 4)
	stored := g.mark(t, m)
	old := leniently(m, string(stored))
	if !proto.Equal(old, m) {
		t.Fatalf("seed %d: the stored text is not that of the object: %s", seed, stored)
	}
	for range 1 + g.IntN(4) {
		g.change(m.ProtoReflect())
	}
	if g.ambiguous(m.ProtoReflect()) {
		return
	}
	got, err := kube.Rewrite(stored, old, m)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(leniently(m, string(got)), m) {
		t.Errorf("seed %d: the text is not that of what was to be written:\n%s\n%s", seed, got, m)
	}
	found := marks.FindAllString(string(got), -1)
	slices.Sort(found)
	if diff := cmp.Diff(g.expected(m.ProtoReflect()), found); diff != "" {
		t.Errorf("seed %d: unknown fields (-want +got):\n%s\nbefore %s\nafter  %s", seed, diff, stored, got)
	}
}

// TestKeepsUnknownOfRandomObjects: an unknown field is only lost with the value that contains it,
// regardless of the change.
func TestKeepsUnknownOfRandomObjects(t *testing.T) {
	for _, seed := range histories.Seeds(t, 2000) {
		testRandomChange(t, seed)
	}
}

func FuzzKeepsUnknown(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(testRandomChange)
}

// FuzzRewrite: the result decodes to the message to be written, regardless of the stored text.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"hosts":["a"],"ports":[{"name":"a","x":1},null],"endpoints":{},"location":"X"}`), uint64(1))
	f.Fuzz(func(t *testing.T, stored []byte, seed uint64) {
		if !json.Valid(stored) {
			t.Skip("the API server stores JSON")
		}
		kinds := istio.Schemas().All()
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		m := kinds[g.IntN(len(kinds))].NewSpec()
		g.fill(m.ProtoReflect(), 4)
		got, err := kube.Rewrite(stored, leniently(m, string(stored)), m)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(leniently(m, string(got)), m) {
			t.Errorf("the text is not that of what was to be written:\n%s\n%s", got, m)
		}
	})
}
