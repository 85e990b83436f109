// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/test/authority"
	"github.com/pilotkit/pilotkit/internal/test/corpus"
	"github.com/pilotkit/pilotkit/internal/test/envoyproxy"
	"github.com/pilotkit/pilotkit/internal/test/testserver"
	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
)

// sampled says that one scenario in so many is replayed to Envoys outside the full tier, others each day.
const sampled = 12

// TestEnvoys replays scenarios to real Envoys, one for each sidecar and gateway: they
// refuse nothing, and after each step everything that they were sent is active. In the full
// tier it replays all, by both protocols and to the newest and the oldest release.
func TestEnvoys(t *testing.T) {
	dir := directory(os.Getenv(directoryVariable))
	names, err := corpus.Names(dir)
	if err != nil {
		t.Fatal(err)
	}
	testEnvoys(t, dir, names)
}

// TestEnvoysSecurity is TestEnvoys for the security kinds.
func TestEnvoysSecurity(t *testing.T) {
	dir, names := securityScenarios(t)
	testEnvoys(t, dir, names)
}

// testEnvoys replays scenarios of a directory to Envoys.
func testEnvoys(t *testing.T, dir string, names []string) {
	t.Helper()
	programs := envoyproxy.Programs(t)
	protocols := map[string]bool{"SotW": false, "delta": true}
	if !tier.Full() {
		delete(protocols, "SotW")
	}
	for _, name := range names {
		if !tier.Sampled(t, name, sampled) {
			continue
		}
		s, err := loadScenario(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		g, err := loadGolden(filepath.Join(dir, filepath.FromSlash(name)) + goldenSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if !hasEnvoys(s) {
			continue
		}
		for _, program := range programs {
			for protocol, delta := range protocols {
				t.Run(fmt.Sprintf("%s/%s/%s", name, program, protocol), func(t *testing.T) {
					t.Parallel()
					replayToEnvoys(t, s, g, envoyproxy.Options{Program: program, Delta: delta})
				})
			}
		}
	}
}

func hasEnvoys(s *scenario) bool {
	for _, p := range s.Proxies {
		if p.Kind != kindGRPC {
			return true
		}
	}
	return false
}

// replayToEnvoys starts the Envoys of a scenario after its first step.
func replayToEnvoys(t *testing.T, s *scenario, g *golden, o envoyproxy.Options) {
	t.Helper()
	sys, adapter := startSystemForEnvoys(t, s)
	var proxies []*realProxy
	for i, st := range s.Steps {
		sys.change(st)
		if i == 0 {
			proxies = sys.startEnvoys(t, adapter, o)
		}
		for _, p := range proxies {
			p.follow(t, g.Steps[i])
		}
		if err := sys.applied(t.Context()); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for _, p := range proxies {
			p.check(t, i)
		}
	}
}

// applied returns when the Envoys have answered everything that there is for them.
func (sys *envoySystem) applied(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return sys.server.WaitApplied(ctx, nil)
}

// envoySystem is a system whose clients are Envoys.
type envoySystem struct {
	*system
	address string
	sent    *sent
}

// startSystemForEnvoys runs a scenario's system with secrets of all names.
func startSystemForEnvoys(t *testing.T, s *scenario) (*envoySystem, *envoyproxy.Adapter) {
	t.Helper()
	issuer := authority.New(t)
	certificate, key := issuer.Issue("any.example.com")
	var credentials *secrets.Provider
	base, err := assemble(s, func(configs configstore.ConfigStoreCache) ads.Provider {
		credentials = secrets.New(configs, secrets.Options{
			Names: []string{"default", "ROOTCA"},
			Function: func(secrets.Name) (*secrets.Secret, error) {
				return &secrets.Secret{Certificate: certificate, Key: key, Authorities: issuer.PEM()}, nil
			},
			Allow: func(string, secrets.Name) bool { return true },
		})
		return credentials
	})
	if err != nil {
		t.Fatal(err)
	}
	sys := &envoySystem{system: base, sent: newSent()}
	adapter := envoyproxy.NewAdapter(t)
	server := grpc.NewServer(grpc.ChainStreamInterceptor(sys.sent.intercept, adapter.Intercept))
	sys.server.Register(server)
	listener := testserver.Listen(t, "127.0.0.1:0")
	sys.address = listener.Addr().String()
	testserver.Serve(t, listener, server, sys.server.Run, credentials.Run)
	return sys, adapter
}
