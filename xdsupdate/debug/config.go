// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/manifest"
	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// configPage is the content of the page of an object.
type configPage struct {
	object
	// Exists reports whether the store has the object. A source that rejects the object may still
	// know it, although the store does not have it.
	Exists   bool     `json:"exists"`
	Errors   []string `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Problems are the problems that sources report for the object. The store keeps the object's
	// last good state, if there is one.
	Problems []problemRow `json:"problems,omitempty"`
	// Effects lists the effects of the object, Ineffective the parts of it that change nothing.
	Effects     []traffic.Effect `json:"effects,omitempty"`
	Ineffective []effectlessRow  `json:"ineffective,omitempty"`
	// LeftOut lists the proxies that reject the object, at most maxLimit.
	LeftOut []faultRow `json:"left_out,omitempty"`
	// Object is the object in the form of its manifest.
	Object json.RawMessage `json:"object,omitempty"`

	// YAML is the object for the HTML page. A long one is truncated, and then Cut is set.
	YAML string `json:"-"`
	Cut  bool   `json:"-"`
	yaml []byte
}

// maxShown is the maximum number of bytes of one object, or resource, on a page. JSON and YAML are
// never truncated.
const maxShown = 256 << 10

func (h *handler) config(q *query) (any, error) {
	kind, err := h.kindOf(q, true)
	if err != nil {
		return nil, err
	}
	key := configstore.ConfigKey{Kind: kind, Namespace: q.values.Get("namespace"), Name: q.values.Get("name")}
	out := &configPage{object: objectOf(key), Problems: h.problemsOf(key)}
	if c := h.Configs.Get(kind, key.Name, key.Namespace); c != nil {
		out.Exists = true
		out.Errors, out.Warnings = h.validity(c)
		if err := out.marshal(h.redacted(*c)); err != nil {
			out.Errors = append(out.Errors, err.Error())
		}
	}
	if !out.Exists && len(out.Problems) == 0 {
		return nil, notFound("there is no %s", out.object)
	}
	if h.Policies != nil {
		effects, ineffective := h.Policies.Effects(key)
		out.Effects = effects[:min(len(effects), maxLimit)]
		for _, i := range ineffective[:min(len(ineffective), maxLimit)] {
			out.Ineffective = append(out.Ineffective, h.effectless(i))
		}
	}
	out.LeftOut = h.faultRows(func(f ads.Fault) bool {
		return f.Object.Kind == key.Kind && f.Object.Namespace == key.Namespace && f.Object.Name == key.Name
	})
	return out, nil
}

func (p *configPage) status() int {
	if !p.Exists {
		return http.StatusNotFound
	}
	return http.StatusOK
}

// marshal sets the JSON and YAML forms of the object.
func (p *configPage) marshal(c configstore.Config) error {
	data, err := manifest.MarshalJSON(c)
	if err != nil {
		return err
	}
	p.Object = data
	if p.yaml, err = manifest.Marshal(c); err != nil {
		return err
	}
	p.YAML, p.Cut = shown(string(p.yaml))
	return nil
}

// raw returns the object alone, for format=yaml.
func (p *configPage) raw(f form) (string, []byte) {
	if f != asYAML || !p.Exists {
		return "", nil
	}
	return "application/yaml; charset=utf-8", p.yaml
}

// shown returns the part of a text that fits into a page, and reports whether the text was
// truncated.
func shown(text string) (string, bool) {
	return excerpt.CutTo(text, maxShown), len(text) > maxShown
}

// violations returns the messages of a validation error.
func violations(err error) (out []string) {
	if invalid := (*configstore.ValidationError)(nil); errors.As(err, &invalid) {
		for _, v := range invalid.Violations {
			out = append(out, redactText(v.String()))
		}
		return out
	}
	return []string{redactText(err.Error())}
}

// effectlessRow is a part of an object that has no effect.
type effectlessRow struct {
	Object object `json:"object"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	// Stored reports whether the object has a page.
	Stored bool `json:"-"`
}

func (h *handler) effectless(i traffic.Ineffective) effectlessRow {
	key := configstore.ConfigKey{Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
	return effectlessRow{
		Object: objectOf(key), Field: i.Field, Reason: redactText(i.Reason),
		Stored: h.hasKind(i.Kind),
	}
}

func decimal(n int) string { return strconv.Itoa(n) }
