// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// object is the key of an object.
type object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func objectOf(key configstore.ConfigKey) object {
	return object{key.Kind.Group, key.Kind.Version, key.Kind.Kind, key.Namespace, key.Name}
}

// FullKind returns the kind in the form of the parameter "kind" of a page.
func (o object) FullKind() string {
	return configstore.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}.String()
}

// String returns the object's name for people.
func (o object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// configKind is a kind of the store.
type configKind struct {
	Kind  string `json:"kind"` // group/version/Kind
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// configRow is an object in a list of objects.
type configRow struct {
	object
	ResourceVersion string            `json:"resource_version,omitempty"`
	Generation      int64             `json:"generation,omitempty"`
	Created         time.Time         `json:"created,omitzero"`
	Labels          map[string]string `json:"labels,omitempty"`
	// Errors and Warnings are the findings of the kind's validation.
	Errors   []string `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// configsPage is the content of the page of configs.
type configsPage struct {
	Kinds []configKind    `json:"kinds"`
	List  list[configRow] `json:"list"`
	// Checked is the number of objects that the request validated, if it asked for invalid objects.
	// The next request continues after them.
	Checked int `json:"checked,omitempty"`
}

// maxChecked is the maximum number of objects that one request validates to find invalid ones.
const maxChecked = 2000

func (h *handler) configs(q *query) (any, error) {
	out := configsPage{}
	schemas := h.Configs.Schemas()
	kind, err := h.kindOf(q, false)
	if err != nil {
		return nil, err
	}
	var all []*configstore.Config
	for _, s := range schemas.All() {
		found := h.Configs.List(s.GroupVersionKind, configstore.NamespaceAll)
		out.Kinds = append(out.Kinds, configKind{s.GroupVersionKind.String(), s.GroupVersionKind.Kind, len(found)})
		if kind == (configstore.GroupVersionKind{}) || kind == s.GroupVersionKind {
			all = append(all, found...)
		}
	}
	matches := func(c *configstore.Config) bool {
		return (!q.is("namespace") || c.Namespace == q.text("namespace")) && matchesConfig(c, q.text("q"))
	}
	if q.is("problems") {
		out.List, out.Checked, err = h.problematic(q, all, matches)
		return out, err
	}
	out.List, err = listOf(q, all, matches, h.row)
	return out, err
}

// matchesConfig reports whether an object matches a search by its name, or by a label as
// "key=value".
func matchesConfig(c *configstore.Config, search string) bool {
	if key, value, ok := strings.Cut(search, "="); ok {
		return c.Labels[key] == value && value != ""
	}
	return contains(search, c.Name, c.Namespace+"/"+c.Name)
}

// problematic returns the objects with validation errors or warnings. It validates a bounded number
// of objects.
func (h *handler) problematic(
	q *query, all []*configstore.Config, matches func(*configstore.Config) bool,
) (out list[configRow], checked int, err error) {
	b, err := q.bounds()
	if err != nil {
		return out, 0, err
	}
	out = list[configRow]{Total: len(all), From: min(b.from, len(all)), Items: []configRow{}}
	at := out.From
	for ; at < len(all) && checked < maxChecked && len(out.Items) < b.limit; at++ {
		if !matches(all[at]) {
			continue
		}
		checked++
		if row := h.row(all[at]); len(row.Errors)+len(row.Warnings) > 0 {
			out.Items = append(out.Items, row)
		}
	}
	out.Matching = len(out.Items)
	if at < len(all) {
		out.Next = q.with("from", decimal(at))
	}
	return out, checked, nil
}

// row returns an object as a row, with the findings of the validation.
func (h *handler) row(c *configstore.Config) configRow {
	row := configRow{
		object: objectOf(c.Key()), ResourceVersion: c.ResourceVersion, Generation: c.Generation,
		Created: c.CreationTimestamp, Labels: c.Labels,
	}
	row.Errors, row.Warnings = h.validity(c)
	return row
}

// validity validates an object with the schema of its kind.
func (h *handler) validity(c *configstore.Config) (errors, warnings []string) {
	schema, ok := h.Configs.Schemas().Find(c.GroupVersionKind)
	if !ok {
		return []string{"the store has no schema for the kind"}, nil
	}
	found, err := schema.Check(*c)
	for _, w := range found {
		warnings = append(warnings, redactText(w.String()))
	}
	if err != nil {
		errors = violations(err)
	}
	return errors, warnings
}

// kindOf returns the kind that a request names, by its full form or by its name alone. Without the
// parameter it returns the zero kind, or an error if the kind is required.
func (h *handler) kindOf(q *query, required bool) (configstore.GroupVersionKind, error) {
	name := q.text("kind")
	if name == "" && !required {
		return configstore.GroupVersionKind{}, nil
	}
	for _, s := range h.Configs.Schemas().All() {
		if k := s.GroupVersionKind; k.String() == name || k.Kind == name {
			return k, nil
		}
	}
	return configstore.GroupVersionKind{}, notFound("the store has no kind %q", name)
}
