// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// connected returns what the server knows of the connected proxies; nil if it does not say.
func (p *Policies) connected() []ads.ProxyStatus {
	p.mu.Lock()
	proxies := p.proxies
	p.mu.Unlock()
	if proxies == nil {
		return nil
	}
	return proxies()
}

// quarantined returns the objects that are left out for clients that refuse them, and
// those that resources cannot be made with, each once for each resource and text, with the
// client that was found first.
func quarantined(connected []ads.ProxyStatus) []Ineffective {
	found := leftOutFindings{first: make(map[leftOutFinding]string), more: make(map[leftOutFinding]int)}
	for _, proxy := range connected {
		for _, status := range proxy.Types {
			for _, r := range status.Refusals {
				found.add(proxy.ID, r.Name, "which refuses it", r.LeftOut)
			}
			for _, f := range status.Failed {
				found.add(proxy.ID, f.Name, "as it cannot be made with it", f.LeftOut)
			}
		}
	}
	return found.ineffective()
}

// leftOutFinding is an object that is left out of a resource for some reason.
type leftOutFinding struct {
	object              configstore.ConfigKey
	resource, why, text string
}

// leftOutFindings are findings in their order, with the first proxy that each was found
// with and the number of the others.
type leftOutFindings struct {
	list  []leftOutFinding
	first map[leftOutFinding]string
	more  map[leftOutFinding]int
}

func (l *leftOutFindings) add(proxy, resource, why string, list []ads.LeftOut) {
	for _, left := range list {
		f := leftOutFinding{left.Object, resource, why, left.Error}
		if _, known := l.first[f]; known {
			l.more[f]++
			continue
		}
		l.first[f], l.list = proxy, append(l.list, f)
	}
}

func (l *leftOutFindings) ineffective() []Ineffective {
	var out []Ineffective
	for _, f := range l.list {
		by := l.first[f]
		if n := l.more[f]; n > 0 {
			by = fmt.Sprintf("%s and %d more", by, n)
		}
		out = append(out, Ineffective{
			Kind: f.object.Kind, Namespace: f.object.Namespace, Name: f.object.Name,
			Reason: fmt.Sprintf("left out of %s for %s, %s: %s", f.resource, by, f.why, f.text),
		})
	}
	return out
}
