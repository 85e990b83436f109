// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"github.com/pilotkit/pilotkit/registry/serviceentry/explain"
)

// verifyPage compares the content of registries with a recomputation from the stores.
type verifyPage struct {
	// Done is set if the request asked for the comparison. Registries is the number of registries
	// compared.
	Done       bool `json:"done"`
	Registries int  `json:"registries"`
	// List has the differences.
	List list[differenceRow] `json:"differences"`
	// Silent are registries that never called the server.
	Silent []string `json:"silent,omitempty"`
}

type differenceRow struct {
	Subject string `json:"subject"`
	Value   string `json:"value"`
	Missing bool   `json:"missing"`
}

func (h *handler) verify(q *query) (any, error) {
	out := &verifyPage{Done: q.is("run"), Silent: h.silent()}
	var all []explain.Difference
	if out.Done {
		for _, c := range h.serviceEntries() {
			out.Registries++
			all = append(all, explain.Verify(c)...)
		}
	}
	var err error
	out.List, err = listOf(q, all, func(d explain.Difference) bool { return contains(q.text("q"), d.Subject, d.Value) },
		func(d explain.Difference) differenceRow { return differenceRow(d) })
	return out, err
}

// silent returns the registries that never called the server, as messages.
func (h *handler) silent() (out []string) {
	if h.Server == nil {
		return nil
	}
	err := h.Server.CheckRegistries()
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			out = append(out, one.Error())
		}
		return out
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}
