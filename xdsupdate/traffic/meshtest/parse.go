// SPDX-License-Identifier: Apache-2.0

package meshtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is an error in a file of cases, with its place.
type Error struct {
	File         string
	Line, Column int
	Message      string
}

// Error returns "FILE:LINE:COLUMN: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Parse returns the cases of a file. Unknown fields, two cases of one name and a file without cases
// are errors. The error joins one Error for each problem.
func Parse(file string, data []byte) ([]Case, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, &Error{file, 1, 1, err.Error()}
	}
	p := &parser{file: file, names: make(map[string]bool)}
	if len(document.Content) == 0 {
		p.errorf(&yaml.Node{Line: 1, Column: 1}, "the file is empty")
		return nil, errors.Join(p.errs...)
	}
	var list *yaml.Node
	root := document.Content[0]
	p.fields(root, "", map[string]any{"cases": &list})
	if list == nil || list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		p.errorf(root, "cases: a list with at least one case is needed")
		return nil, errors.Join(p.errs...)
	}
	var out []Case
	for _, n := range list.Content {
		out = append(out, p.one(n))
	}
	return out, errors.Join(p.errs...)
}

// parser parses a file.
type parser struct {
	file  string
	names map[string]bool
	errs  []error
}

func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, &Error{p.file, n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// one parses a case.
func (p *parser) one(n *yaml.Node) Case {
	c := Case{File: p.file, Line: n.Line}
	var from source
	var to target
	r, e := &c.Request, &c.Expect
	p.fields(n, "", map[string]any{
		"name": &c.Name,
		"from": map[string]any{
			"gateway": &from.gateway, "workload": &from.workload, "grpc": &from.grpc, "labels": &from.labels, "cluster": &from.cluster,
			"network": &from.network, "principal": &from.principal, "address": &from.address,
		},
		"request": map[string]any{
			"port": &r.Port, "protocol": &to.protocol, "tls": &r.TLS, "sni": &r.ServerName, "method": &r.Method, "host": &r.Authority,
			"path": &r.Path, "headers": &to.headers, "claims": &r.Claims,
		},
		"expect": map[string]any{
			"to": &e.To, "shares": &e.Shares, "path": &e.Path, "host": &e.Host, "rule": &e.Rule, "denied": &e.Denied,
			"redirect": &e.Redirect, "status": &e.Status, "closed": &e.Closed, "noEffect": &e.NoEffect,
		},
	})
	switch {
	case c.Name == "":
		p.errorf(n, "name: is needed")
	case p.names[c.Name]:
		p.errorf(n, "name: another case is called %q", c.Name)
	case strings.ContainsAny(c.Name, "\n\r"):
		p.errorf(n, "name: must be one line")
	}
	p.names[c.Name] = true
	if e.empty() {
		p.errorf(n, "expect: at least one field is needed")
	}
	if err := errors.Join(from.set(&c), to.set(r)); err != nil {
		p.errorf(n, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return c
}

func (e *Expectation) empty() bool {
	return e.To+e.Path+e.Host+e.Rule+e.Denied+e.Redirect+e.NoEffect == "" && len(e.Shares) == 0 && e.Status == 0 && !e.Closed
}

// fields decodes a mapping into pointers, or mappings of them, by the names of its fields.
func (p *parser) fields(n *yaml.Node, path string, into map[string]any) {
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "%smust be a mapping", path)
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		to, known := into[key.Value]
		switch {
		case !known:
			p.errorf(key, "%s%s: unknown field; known are %s", path, key.Value, strings.Join(slices.Sorted(maps.Keys(into)), ", "))
			continue
		case seen[key.Value]:
			p.errorf(key, "%s%s: is there twice", path, key.Value)
		}
		seen[key.Value] = true
		switch to := to.(type) {
		case map[string]any:
			p.fields(value, path+key.Value+".", to)
		case **yaml.Node:
			*to = value
		default:
			if err := value.Decode(to); err != nil {
				p.errorf(value, "%s%s: has a value of another type", path, key.Value)
			}
		}
	}
}
