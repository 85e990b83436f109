// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/credentials"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/refusals"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	services "github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// plane is the control plane under test, as a program wires it together.
type plane struct {
	gateways   *cluster.Cache
	statuses   *cluster.StatusWriter
	configs    *aggregate.Cache
	registries *aggregate.Controller
	secrets    *secrets.Provider
	server     *ads.Server
}

func newPlane(config *rest.Config, infrastructure gatewayapi.Infrastructure, logger *slog.Logger) (*plane, error) {
	p := &plane{}
	var err error
	p.gateways, err = cluster.New(config, cluster.Options{CacheOptions: gatewayapi.CacheOptions{Infrastructure: infrastructure, Logger: logger}})
	if err != nil {
		return nil, err
	}
	p.statuses, err = cluster.NewStatusWriter(p.gateways, config, kube.StatusOptions{
		Logger: logger, Lease: "gateways", LeaseNamespace: "default", Rate: 1000,
	})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// Nobody writes objects of Istio's own kinds.
	own := memory.NewController(memory.Make(istio.Schemas()), memory.ControllerOptions{Logger: logger})
	p.configs = aggregate.MakeCache(p.gateways, own)
	p.registries = aggregate.NewController()
	source := credentials.New(p.gateways.Cache, p.gateways)
	p.secrets = secrets.New(p.configs, secrets.Options{Logger: logger, Function: source.Find, Interval: -1})
	p.gateways.OnData(p.secrets.Changed)
	source.OnChange(p.secrets.Changed)
	p.server = ads.New(p.registries, ads.Options{
		Logger: logger, Providers: []ads.Provider{traffic.New(p.configs, traffic.Options{}), p.secrets},
	})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return services.New(client, updater, services.Options{ClusterID: "Kubernetes", Logger: logger})
	})
	return p, nil
}

// run runs the control plane until ctx ends.
func (p *plane) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, run := range []func(<-chan struct{}){
		p.configs.Run, p.statuses.Run, p.registries.Run, p.server.Run, p.secrets.Run,
		func(stop <-chan struct{}) { refusals.Run(p.server, p.gateways, stop) },
	} {
		running.Go(func() { run(ctx.Done()) })
	}
}
