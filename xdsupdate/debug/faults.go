// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// faultRow is a resource that a proxy does not have as it should.
type faultRow struct {
	Proxy   string          `json:"proxy"`
	Stream  uint64          `json:"stream"`
	TypeURL string          `json:"type_url"`
	Name    string          `json:"name"`
	Status  ads.FaultStatus `json:"status"`
	// Object is the object at fault, or nil if none is known.
	Object *object   `json:"object,omitempty"`
	Error  string    `json:"error"`
	Since  time.Time `json:"since,omitzero"`
	Times  int       `json:"times,omitempty"`
}

func faultRowOf(f ads.Fault) faultRow {
	row := faultRow{
		Proxy: f.Proxy, Stream: f.Stream, TypeURL: f.TypeURL, Name: f.Name, Status: f.Status, Error: redactText(f.Text), Since: f.Since, Times: f.Times,
	}
	if f.Object != (configstore.ConfigKey{}) {
		o := objectOf(f.Object)
		row.Object = &o
	}
	return row
}

// String describes the fault, and the object that is left out.
func (r faultRow) String() string {
	text := fmt.Sprintf("%s: %s %s: %s", r.Proxy, typeName(r.TypeURL), r.Name, r.Error)
	if r.Object != nil {
		text += " (left out: " + r.Object.String() + ")"
	}
	return text
}

// isOfBuild reports whether the resource cannot be built; else the proxy rejects it.
func (r faultRow) isOfBuild() bool {
	return r.Status == ads.FaultNotBuilt || r.Status == ads.FaultBuiltWithout
}

// faults returns the faults of all proxies.
func (h *handler) faults() []ads.Fault {
	if h.Server == nil {
		return nil
	}
	list, _ := h.Server.Faults()
	return list
}

// faultRows returns the faults that are accepted, at most maxLimit.
func (h *handler) faultRows(accept func(ads.Fault) bool) (out []faultRow) {
	for _, f := range h.faults() {
		if len(out) < maxLimit && accept(f) {
			out = append(out, faultRowOf(f))
		}
	}
	return out
}
