// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/test/routecheck"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

// routed compares a router with the predictions of package routesim, for calls by the resources that
// the client has been sent.
func (c *client) routed() error {
	state, sent := c.State(), make(routecheck.Sent)
	for _, typeURL := range typeURLs {
		sent[typeURL] = make(map[string]proto.Message)
		for name, held := range state.Resources(typeURL) {
			m, err := held.Message()
			if err != nil {
				return err
			}
			sent[typeURL][name] = m
		}
	}
	kind := map[string]route.Kind{kindRouter: route.Gateway, kindSidecar: route.Workload, kindGRPC: route.GRPC}[c.spec.Kind]
	seed := sha256.Sum256([]byte(c.sys.scenario.Name + c.spec.Name))
	n, err := sent.Check(kind, rand.New(rand.NewChaCha8(seed)))
	c.sys.routed += n
	return err
}
