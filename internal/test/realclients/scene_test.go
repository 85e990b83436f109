// SPDX-License-Identifier: Apache-2.0

package realclients

import (
	"encoding/json"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
)

// scene is the test of a scenario with one of the clients. Its processes end with it.
type scene struct {
	*testing.T
	client kind
}

// eachClient runs a scenario with each of the clients.
func eachClient(t *testing.T, scenario func(s *scene)) {
	t.Helper()
	for _, k := range kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			k.Require(t)
			scenario(&scene{t, k})
		})
	}
}

func (s *scene) backend(name string) *backend {
	s.Helper()
	return startBackend(s.T, name)
}

// plane starts a control plane that knows some configs from the start.
func (s *scene) plane(configs ...configstore.Config) *plane {
	s.Helper()
	return s.planeAt("", configs...)
}

func (s *scene) planeAt(address string, configs ...configstore.Config) *plane {
	s.Helper()
	return startPlane(s.T, address, configs...)
}

// call starts a client of a control plane that calls a target, and waits until it
// runs. Its namespace is apps.
func (s *scene) call(p *plane, target string) *caller {
	s.Helper()
	feed, send := s.client.repeat(s.T, bootstrap(s.T, p.Address), target)
	return newCaller(s.T, feed, send)
}

// bootstrap returns the bootstrap of a client whose control plane has an address.
func bootstrap(t *testing.T, address string) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri":      address,
			"channel_creds":   []any{map[string]any{"type": "insecure"}},
			"server_features": []string{"xds_v3"},
		}},
		// grpc-js needs a locality, though it may be empty.
		"node": map[string]any{"id": "sidecar~127.0.0.1~client.apps~apps.svc.cluster.local", "locality": map[string]any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
