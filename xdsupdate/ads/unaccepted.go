// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"maps"
	"time"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/acks"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
)

// unaccepted is a resource of which a client has accepted no state since it refused a
// response with it.
type unaccepted struct {
	// accepted is the state that it accepted before, and works with; nil: it has none.
	accepted *resource.State
	// refused is the state that it was sent, text what it said of the last response with
	// the resource, and since when it accepts none.
	refused *resource.State
	text    string
	since   time.Time
}

// note takes that a client has not accepted resources of a response.
func (r *refusals) note(o *acks.Response, list []*resource.State, text string) {
	if len(r.unaccepted) >= fullTexts {
		text = excerpt.CutTo(text, shortText)
	}
	for _, res := range list {
		u, again := r.unaccepted[res.Name]
		if !again {
			u = unaccepted{accepted: o.Before.Find(res.Name), since: time.Now()}
		}
		u.refused, u.text = res, text
		r.unaccepted[res.Name] = u
	}
}

// forgetGone forgets the resources that the client does not have any more.
func (r *refusals) forgetGone(has *resource.Snapshot) {
	if r != nil && len(r.unaccepted) > 0 {
		maps.DeleteFunc(r.unaccepted, func(name string, _ unaccepted) bool { return !has.Find(name).IsPresent() })
	}
}
