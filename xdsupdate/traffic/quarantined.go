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
func quarantined(faults []ads.Fault) (out []Ineffective) {
	type cause struct {
		object              configstore.ConfigKey
		resource, why, text string
	}
	var causes []cause
	proxies := make(map[cause][]string)
	for _, f := range faults {
		if f.Object == (configstore.ConfigKey{}) {
			continue
		}
		c := cause{f.Object, f.Name, "which refuses it", f.Text}
		if f.Status == ads.FaultBuiltWithout {
			c.why = "as it cannot be made with it"
		}
		if proxies[c] == nil {
			causes = append(causes, c)
		}
		proxies[c] = append(proxies[c], f.Proxy)
	}
	for _, c := range causes {
		out = append(out, Ineffective{
			Kind: c.object.Kind, Namespace: c.object.Namespace, Name: c.object.Name,
			Reason: fmt.Sprintf("left out of %s for %s, %s: %s", c.resource, andMore(proxies[c][0], len(proxies[c])), c.why, c.text),
		})
	}
	return out
}

// andMore names the first of n proxies, and the number of others.
func andMore(first string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s and %d more", first, n-1)
	}
	return first
}
