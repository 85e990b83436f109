// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// connected returns the status of the connected proxies. It is nil if the server has no such
// method.
func (p *Policies) connected() []ads.ProxyStatus {
	p.mu.Lock()
	proxies := p.proxies
	p.mu.Unlock()
	if proxies == nil {
		return nil
	}
	return proxies()
}

// quarantined returns findings for the objects that are left out because clients reject them or
// resources cannot be built with them. There is one finding for each object, resource and reason,
// with the first affected client.
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

// leftOutFinding is an object that is left out of a resource, with the reason.
type leftOutFinding struct {
	object              configstore.ConfigKey
	resource, why, text string
}

// leftOutFindings are findings in order, each with the first affected proxy and the number of
// others.
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
