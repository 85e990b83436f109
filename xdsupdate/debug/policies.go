// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"maps"
	"slices"

	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// ineffectivePage is the content of the page of objects without effect.
type ineffectivePage struct {
	// Kinds are the kinds of all findings, and the kind that the request asks for.
	Kinds []string            `json:"kinds"`
	List  list[effectlessRow] `json:"list"`
}

func (h *handler) ineffective(q *query) (any, error) {
	var out ineffectivePage
	var err error
	all := h.Policies.Ineffective()
	kinds := map[string]bool{}
	for _, i := range all {
		kinds[i.Kind.Kind] = true
	}
	if q.is("kind") {
		kinds[q.text("kind")] = true
	}
	out.Kinds = slices.AppendSeq([]string{}, maps.Keys(kinds))
	slices.Sort(out.Kinds)
	out.List, err = listOf(q, all, func(i traffic.Ineffective) bool {
		return (!q.is("kind") || i.Kind.Kind == q.text("kind")) && (!q.is("namespace") || i.Namespace == q.text("namespace")) &&
			contains(q.text("q"), i.Namespace+"/"+i.Name, i.Reason, i.Field)
	}, h.effectless)
	return out, err
}
