// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
)

// quarantined returns the objects that are left out for clients that refuse them, each
// once for each resource and text, with the client that was found first.
func (p *Policies) quarantined() []Ineffective {
	p.mu.Lock()
	proxies := p.proxies
	p.mu.Unlock()
	if proxies == nil {
		return nil
	}
	type finding struct {
		object         configstore.ConfigKey
		resource, text string
	}
	first, more := make(map[finding]string), make(map[finding]int)
	var found []finding
	for _, proxy := range proxies() {
		for _, status := range proxy.Types {
			for _, refusal := range status.Refusals {
				for _, left := range refusal.LeftOut {
					f := finding{left.Object, refusal.Name, left.Error}
					if _, known := first[f]; known {
						more[f]++
						continue
					}
					first[f], found = proxy.ID, append(found, f)
				}
			}
		}
	}
	var out []Ineffective
	for _, f := range found {
		by := first[f]
		if n := more[f]; n > 0 {
			by = fmt.Sprintf("%s and %d more", by, n)
		}
		out = append(out, Ineffective{
			Kind: f.object.Kind, Namespace: f.object.Namespace, Name: f.object.Name,
			Reason: fmt.Sprintf("left out of %s for %s, which refuses it: %s", f.resource, by, f.text),
		})
	}
	return out
}
