// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// freeform is a kind whose spec is any object.
func freeform() configstore.Schemas {
	return configstore.NewSchemasBuilder().MustAdd(configstore.Schema{
		GroupVersionKind: configstore.GroupVersionKind{Version: "v1", Kind: "Free"}, Spec: &structpb.Struct{},
	}).Build()
}

// The meaning of scalars was compared with sigs.k8s.io/yaml v1.6.0, the reader behind kubectl, on
// 200,000 random ones; this table is the result.
func TestScalarsMeanWhatTheyMeanToKubectl(t *testing.T) {
	for json, spellings := range map[string][]string{
		`true`:                          {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y", "!!bool yes", `!!bool "on"`},
		`false`:                         {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"},
		`null`:                          {"", "~", "null", "Null", "NULL", "!!null null"},
		`8`:                             {"8", "+8", "010", "0o10", "0x8", "0X8", "0b1000", "8.0", "8.", "0.8e1", "08", "!!int 8", `!!int "8"`, "!!float 8", "8_", "80e-1"},
		`-8`:                            {"-8", "-010", "-0x8", "-0b1000"},
		`1000`:                          {"1e3", "1E3", "1e+3", "1_000", "1_0_0_0"},
		`0.5`:                           {".5", "0.5", "+.5", "5e-1", ".5e0"},
		`1.1`:                           {"1.10"},
		`4503599627370497`:              {"4503599627370497"},
		`"tRue"`:                        {"tRue", `"tRue"`, "!!str tRue"},
		`"yes"`:                         {`"yes"`, "'yes'", "!!str yes", "!custom yes"},
		`"8"`:                           {`"8"`, "'8'", "!!str 8"},
		`""`:                            {`""`, "''", "!!str"},
		`"2024-01-01"`:                  {"2024-01-01", "!!timestamp 2024-01-01"},
		`"12:30:45"`:                    {"12:30:45"},
		`"1.2.3.4"`:                     {"1.2.3.4"},
		`"_1"`:                          {"_1"},
		`"1e"`:                          {"1e"},
		`"0x"`:                          {"0x"},
		`"1e999"`:                       {"1e999"},
		`"0xFFFFFFFFFFFFFFFFFF"`:        {"0xFFFFFFFFFFFFFFFFFF"},
		`"="`:                           {"="},
		`"hello"`:                       {"hello", "!!binary aGVsbG8="},
		`"a b\nc"`:                      {"\"a\n    b\\nc\"", "|-\n    a b\n    c"},
		`{"8":1,"true":2}`:              {"{8: 1, yes: 2}"},
		`{"1.1":1,".inf":2}`:            {"{1.10: 1, .inf: 2}"},
		`[{"a":1,"b":2},{"a":1,"b":3}]`: {"[&x {a: 1, b: 2}, {<<: *x, b: 3}]", "[{a: 1, b: 2}, {<<: [{a: 1}, {a: 2, b: 3}]}]"},
	} {
		for _, s := range spellings {
			docs := manifest.Parse(freeform(), []byte("apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  v: "+s+"\n"), manifest.Options{})
			if len(docs) != 1 || docs[0].Err != nil {
				t.Errorf("%q: %v", s, docs)
				continue
			}
			want := &structpb.Struct{}
			if err := protojson.Unmarshal([]byte(`{"v":`+json+`}`), want); err != nil {
				t.Fatal(err)
			}
			if !configstore.EqualMessage(docs[0].Config.Spec, want) {
				t.Errorf("%q = %v, want %v", s, docs[0].Config.Spec, want)
			}
		}
	}
}

func TestScalarsThatJSONCannotHold(t *testing.T) {
	for _, s := range []string{".nan", ".inf", "-.INF", "!!int x", "!!bool 1", "!!float x", "!!binary '#'", "!!binary /w==", "{[a]: b}", "{~: b}", "{<<: 5}", "{<<: [[{a: b}]]}"} {
		_, err := manifest.ParseAll(freeform(), []byte("apiVersion: v1\nkind: Free\nmetadata: {name: a}\nspec:\n  v: "+s+"\n"), manifest.Options{})
		if !errors.Is(err, manifest.ErrMalformed) || !strings.Contains(err.Error(), "line 5, column") {
			t.Errorf("%q: %v, want an error in line 5", s, err)
		}
	}
}

// JSON is read as JSON, where it differs from what YAML 1.1 readers accept.
func TestJSONIsNotReadAsYAML(t *testing.T) {
	docs := manifest.Parse(freeform(), []byte("{\n\t\"apiVersion\": \"v1\", \"kind\": \"Free\", \"metadata\": {\"name\": \"a\"},\n"+
		"\t\"spec\": {\"a\": \"\\ud83d\\ude00\\/\", \"b\": [1e3, -0.5, true, null], \"c\": \"yes\", \"<<\": {\"d\": 1}}}\n"), manifest.Options{})
	want := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(`{"a":"😀/","b":[1000,-0.5,true,null],"c":"yes","<<":{"d":1}}`), want); err != nil {
		t.Fatal(err)
	}
	if len(docs) != 1 || docs[0].Err != nil || !configstore.EqualMessage(docs[0].Config.Spec, want) {
		t.Errorf("read %v, want %v", docs, want)
	}
	for _, bad := range []string{`{"a": 1, "a": 2}`, `{"a": 1e999}`} {
		_, err := manifest.ParseAll(freeform(), []byte(`{"apiVersion":"v1","kind":"Free","metadata":{"name":"a"},"spec":`+bad+`}`), manifest.Options{})
		if !errors.Is(err, manifest.ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", bad, err)
		}
	}
}
