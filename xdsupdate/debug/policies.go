// SPDX-License-Identifier: Apache-2.0

package debug

import "github.com/pilotkit/pilotkit/xdsupdate/traffic"

// ineffectivePage is what has no effect.
type ineffectivePage struct {
	List list[effectlessRow] `json:"list"`
}

func (h *handler) ineffective(q *query) (any, error) {
	var out ineffectivePage
	var err error
	out.List, err = listOf(q, h.Policies.Ineffective(), func(i traffic.Ineffective) bool {
		return (!q.is("kind") || i.Kind.Kind == q.text("kind")) && (!q.is("namespace") || i.Namespace == q.text("namespace")) &&
			contains(q.text("q"), i.Namespace+"/"+i.Name, i.Reason, i.Field)
	}, h.effectless)
	return out, err
}
