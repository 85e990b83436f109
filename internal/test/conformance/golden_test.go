// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// golden is a recording: README.md, section 3.
type golden struct {
	Name          string        `json:"name"`
	FormatVersion int           `json:"formatVersion"`
	RecordedFrom  string        `json:"recordedFrom"`
	Steps         []observation `json:"steps"`

	// unknown says which field the runner does not know, if there is one: it is not
	// compared.
	unknown error
}

// alternative holds the variants of a section that differed between runs, in
// JSON with the tables resolved.
type alternative []json.RawMessage

// answers are the results of one lookup by host name: one, or several equally valid ones.
type answers []string

// UnmarshalJSON takes a string or a list of strings.
func (a *answers) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = answers{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// tables are the lists that large files refer to by position.
type tables map[string][]any

// tableOf returns the table that resolves an integer under a field name.
func (t tables) tableOf(field string) []any {
	switch field {
	case "endpoints", "endpoint":
		return t["endpointTable"]
	case "services":
		return t["serviceTable"]
	case "targets":
		return t["targetTable"]
	default:
		return nil
	}
}

// resolve replaces positions in tables by their values. v belongs to the field.
func (t tables) resolve(field string, v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if v[k], err = t.resolve(k, x); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, x := range v {
			if v[i], err = t.resolve(field, x); err != nil {
				return nil, err
			}
		}
	case json.Number:
		table := t.tableOf(field)
		if table == nil {
			return v, nil
		}
		i, err := v.Int64()
		if err != nil || i < 0 || i >= int64(len(table)) {
			return nil, fmt.Errorf("%s: position %s in a table of %d", field, v, len(table))
		}
		return table[i], nil
	}
	return v, nil
}

// loadGolden reads a recording.
func loadGolden(file string) (*golden, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	plain, err := resolveTables(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	g := &golden{}
	if err := json.Unmarshal(plain, g); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if g.FormatVersion != 1 {
		return nil, fmt.Errorf("%s: format version %d", file, g.FormatVersion)
	}
	strict := json.NewDecoder(bytes.NewReader(plain))
	strict.DisallowUnknownFields()
	g.unknown = strict.Decode(&golden{})
	return g, nil
}

// resolveTables returns the JSON of a recording without tables.
func resolveTables(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	root := map[string]any{}
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	t := tables{}
	for _, name := range []string{"endpointTable", "serviceTable", "targetTable"} {
		if table, ok := root[name].([]any); ok {
			t[name] = table
		}
		delete(root, name)
	}
	if _, err := t.resolve("", root); err != nil {
		return nil, err
	}
	return json.Marshal(root)
}
