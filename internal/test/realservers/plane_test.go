// SPDX-License-Identifier: Apache-2.0

package realservers

import (
	"testing"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/testplane"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// patience is more than anything takes.
const patience = 2 * time.Minute

// plane is a control plane with policies.
type plane struct{ *testplane.Plane }

// startPlane serves what documents say.
func startPlane(t *testing.T, text string) *plane {
	t.Helper()
	mesh := &meshconfig.MeshConfig{TrustDomain: "cluster.local"}
	return &plane{testplane.Start(t, testplane.Options{
		Address: "127.0.0.1:0", Objects: testplane.Documents(t, text),
		Server: func(p *testplane.Plane) ads.Options {
			return ads.Options{Providers: []ads.Provider{traffic.New(p.Configs, traffic.Options{Mesh: mesh})}}
		},
	})}
}

// apply creates or replaces objects, in one commit.
func (p *plane) apply(text string) {
	p.TB.Helper()
	p.Change(text, "")
}

func (p *plane) write(configs []configstore.Config) error {
	_, err := p.Store.Apply(testplane.Upserts(configs)...)
	return err
}

// remove deletes objects, in one commit.
func (p *plane) remove(text string) {
	p.TB.Helper()
	p.Change("", text)
}
