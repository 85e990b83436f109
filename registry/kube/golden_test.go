// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
)

// record is an object of a recording without empty fields, because absent and empty fields mean the
// same.
type record map[string]any

// text returns the record in one form, so that equal records have equal texts.
func (r record) text() string {
	data, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (r record) str(field string) string {
	s, _ := r[field].(string)
	return s
}

// list returns the records under a field.
func (r record) list(field string) []record {
	var out []record
	all, _ := r[field].([]any)
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (r record) strings(field string) []string {
	var out []string
	all, _ := r[field].([]any)
	for _, v := range all {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (r record) with(field string, v any) record {
	out := record{}
	maps.Copy(out, r)
	if v == nil {
		delete(out, field)
	} else {
		out[field] = v
	}
	return out
}

// plain converts any value to the form of a record: maps without empty values, lists, strings,
// numbers and booleans.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return err.Error()
	}
	return withoutEmpty(out)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x = withoutEmpty(x); isEmpty(x) {
				delete(v, k)
			} else {
				v[k] = x
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case json.Number:
		return v == "0"
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// loadGolden reads the steps of a recording, with tables resolved.
func loadGolden(file string) ([]record, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	root := map[string]any{}
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if root["formatVersion"] != json.Number("1") {
		return nil, fmt.Errorf("%s: format version %v", file, root["formatVersion"])
	}
	tables := map[string][]any{}
	for _, name := range []string{"endpointTable", "serviceTable", "targetTable"} {
		tables[name], _ = root[name].([]any)
		delete(root, name)
	}
	resolved := resolve(tables, "", root)
	steps := record(withoutEmpty(resolved).(map[string]any)).list("steps")
	for i, s := range steps {
		if _, ok := s["index"]; !ok {
			steps[i]["index"] = json.Number("0")
		}
	}
	return steps, nil
}

// resolve replaces positions in tables by the values there.
func resolve(tables map[string][]any, field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = resolve(tables, k, x)
		}
	case []any:
		for i, x := range v {
			v[i] = resolve(tables, field, x)
		}
	case json.Number:
		table := tables[map[string]string{
			"endpoints": "endpointTable", "endpoint": "endpointTable", "services": "serviceTable", "targets": "targetTable",
		}[field]]
		if i, err := v.Int64(); err == nil && table != nil && int(i) < len(table) {
			return plain(table[i])
		}
	}
	return v
}
