// SPDX-License-Identifier: Apache-2.0

// Package refusals has the statuses of Gateway API objects say what proxies refuse of what was
// made of them.
//
//	go refusals.Run(server, gateways, stop)
//
// An ads.Server leaves an object out for a proxy that refuses it, and serves the rest. Then the route
// that the object was made of is not accepted, with the reason RefusedByProxy and what the proxy
// said, until the proxy has accepted a later state of it, or has left; a listener is not programmed.
// So it is with what the server leaves out for all proxies, because it cannot be made. Of a
// VirtualService that several routes have a part in, all of them say so.
//
// Of several replicas that serve proxies each knows what its own ones refuse, and the one that
// writes statuses writes that.
package refusals

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// interval is the time between two looks at the server at least: what is refused is written to an
// API server, and not every answer of a proxy is worth a look at all of them.
const interval = 100 * time.Millisecond

// Server says what is left out for its proxies: an ads.Server does.
type Server interface {
	LeftOut() (refused, unmade []ads.LeftOut)
	Progress() <-chan struct{}
}

// Statuses are told what is refused: a gatewayapi.Cache, or a cluster.Cache.
type Statuses interface {
	Apply(changes ...gatewayapi.Change)
}

// Run tells statuses what proxies of a server refuse, within 100 ms of their answers, until stop
// is closed. What was said last stays then. It costs nothing while no proxy answers.
func Run(server Server, statuses Statuses, stop <-chan struct{}) {
	again := time.NewTimer(interval)
	defer again.Stop()
	said := false
	for {
		progress := server.Progress()
		texts := textsOf(server.LeftOut())
		if len(texts) > 0 || said { // Also if they are the same: the objects may have others in them now.
			statuses.Apply(gatewayapi.SetRefusals(texts))
			said = len(texts) > 0
		}
		again.Reset(interval)
		if !await(progress, stop) || !await(again.C, stop) {
			return
		}
	}
}

// await returns when there is something to receive, or false: it was stopped.
func await[T any](from <-chan T, stop <-chan struct{}) bool {
	select {
	case <-from:
		return true
	case <-stop:
		return false
	}
}

// textsOf are the messages of conditions.
func textsOf(refused, unmade []ads.LeftOut) map[configstore.ConfigKey]string {
	texts := make(map[configstore.ConfigKey]string, len(refused)+len(unmade))
	for _, l := range refused {
		texts[l.Object] = "a proxy refuses it: " + l.Error
	}
	for _, l := range unmade {
		texts[l.Object] = "it is left out for all proxies: " + l.Error
	}
	return texts
}
