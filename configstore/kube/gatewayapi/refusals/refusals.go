// SPDX-License-Identifier: Apache-2.0

// Package refusals reports the proxies' NACKs in the statuses of the Gateway API objects that
// caused them.
//
//	go refusals.Run(server, gateways, stop)
//
// An ads.Server excludes an object for a proxy that rejects it, and serves the others. The route of
// a rejected object is then not accepted, with the reason RefusedByProxy and the proxy's message,
// until the proxy has accepted a later version of it or has disconnected; a rejected listener is
// not programmed. The same applies to objects that the server excludes for all proxies because it
// cannot generate their resources. If several routes contribute to a rejected VirtualService, all
// of them are rejected.
//
// Each replica that serves proxies knows the NACKs of its own proxies. The replica that writes
// statuses reports only its own.
package refusals

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// interval is the minimum time between two reads of the server. The NACKs are written to an API
// server, and not every response of a proxy justifies reading all of them.
const interval = 100 * time.Millisecond

// Server returns the faults of its proxies, with the objects that are excluded. An ads.Server implements
// it.
type Server interface {
	Faults() (list []ads.Fault, changed <-chan struct{})
}

// Statuses receives the NACKs: a gatewayapi.Cache, or a cluster.Cache.
type Statuses interface {
	Apply(changes ...gatewayapi.Change)
}

// Run applies the NACKs of a server's proxies to statuses, within 100 ms of their responses, until
// stop is closed; the last NACKs remain after that. It costs nothing while no proxy responds.
func Run(server Server, statuses Statuses, stop <-chan struct{}) {
	again := time.NewTimer(interval)
	defer again.Stop()
	said := false
	for {
		faults, changed := server.Faults()
		texts := textsOf(faults)
		if len(texts) > 0 || said { // also if they are unchanged, because other objects may contribute now
			statuses.Apply(gatewayapi.SetRefusals(texts))
			said = len(texts) > 0
		}
		again.Reset(interval)
		if !await(changed, stop) || !await(again.C, stop) {
			return
		}
	}
}

// await returns true when it has received from the channel, or false when stop is closed.
func await[T any](from <-chan T, stop <-chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-stop:
		return false
	}
}

// textsOf returns the messages for the conditions.
func textsOf(faults []ads.Fault) map[configstore.ConfigKey]string {
	texts := make(map[configstore.ConfigKey]string)
	for _, f := range faults {
		switch {
		case f.Object == configstore.ConfigKey{}:
		case f.Status == ads.FaultBuiltWithout:
			texts[f.Object] = "it is left out for all proxies: " + f.Text
		case texts[f.Object] == "":
			texts[f.Object] = "a proxy refuses it: " + f.Text
		}
	}
	return texts
}
