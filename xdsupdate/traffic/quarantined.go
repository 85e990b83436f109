// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// server is the part of the server that reports about its clients.
type server interface {
	Proxies() []ads.ProxyStatus
	Faults() (list []ads.Fault, changed <-chan struct{})
}

// connected returns the status of the connected proxies, and their faults. Both are nil if the updater is no
// server.
func (p *Policies) connected() ([]ads.ProxyStatus, []ads.Fault) {
	if p.server == nil {
		return nil, nil
	}
	faults, _ := p.server.Faults()
	return p.server.Proxies(), faults
}

// quarantined returns findings for the objects that are left out because clients reject them or
// resources cannot be built with them. There is one finding for each object, resource and reason,
// with the first affected client.
func quarantined(faults []ads.Fault) []Ineffective {
	found := leftOutFindings{first: make(map[leftOutFinding]string), more: make(map[leftOutFinding]int)}
	for _, f := range faults {
		switch {
		case f.Object == configstore.ConfigKey{}:
		case f.Status == ads.FaultBuiltWithout:
			found.add(f, "as it cannot be made with it")
		default:
			found.add(f, "which refuses it")
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

func (l *leftOutFindings) add(fault ads.Fault, why string) {
	f := leftOutFinding{fault.Object, fault.Name, why, fault.Text}
	if _, known := l.first[f]; known {
		l.more[f]++
		return
	}
	l.first[f], l.list = fault.Proxy, append(l.list, f)
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
