// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	configs "github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	gateways "github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/cluster"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi/refusals"
	"github.com/pilotkit/pilotkit/registry"
	services "github.com/pilotkit/pilotkit/registry/kube"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/secrets"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// plane is a control plane that serves the cluster's custom resources and Services to xDS clients.
type plane struct {
	settings   settings
	configs    *configs.Cache
	gateways   *gateways.Cache          // configs translated from the Gateway API
	merged     *aggregate.Cache         // both sources of configs
	statuses   *configs.StatusWriter    // nil if no statuses are written
	ofRoutes   *gateways.StatusWriter   // for the Gateway API; nil like statuses
	reporter   *configs.ServiceReporter // for ServiceEntries; nil like statuses
	registries *aggregate.Controller
	secrets    *secrets.Provider
	policies   *traffic.Policies
	server     *ads.Server
	// probing and started are called with the addresses of probes and of xDS when these are served.
	probing, started func(address string)
}

// newPlane wires the parts together. It runs and reads nothing yet.
func newPlane(config *rest.Config, s settings) (*plane, error) {
	p := &plane{settings: s, probing: func(string) {}, started: func(string) {}}
	var err error
	p.configs, err = configs.New(config, istio.Schemas(), configs.Options{Logger: s.log, Domain: s.domain, Revision: s.revision})
	if err != nil {
		return nil, err
	}
	p.gateways, err = gateways.New(config, gateways.Options{
		CacheOptions: gatewayapi.CacheOptions{
			Options: gatewayapi.Options{Domain: s.domain}, ServiceEntries: p.configs, Logger: s.log,
		},
		Revision: s.revision, Optional: []string{"secrets"}, // the manifests do not grant access to Secrets
	})
	if err != nil {
		return nil, err
	}
	p.merged = aggregate.MakeCache(p.configs, p.gateways)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	p.registries = aggregate.NewController(aggregate.Options{Logger: s.log})
	// Proxies read the files that Gateways and DestinationRules reference on their own hosts. To
	// support credentialName, and certificateRefs of the Gateway API, this program would have to
	// read Secrets and to authenticate its clients, whose claims it trusts: see packages secrets
	// and gatewayapi/credentials.
	p.secrets = secrets.New(p.merged, secrets.Options{Logger: s.log})
	p.policies = traffic.New(p.merged, traffic.Options{Domain: s.domain, Logger: s.log})
	p.server = ads.New(p.registries, ads.Options{
		Logger: s.log, Providers: []ads.Provider{p.policies, p.secrets},
	})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return services.New(client, updater, services.Options{
			ClusterID: registry.ClusterID(s.cluster), DomainSuffix: s.domain, Logger: s.log,
		})
	})
	p.registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(p.configs, updater)
	})
	return p, p.addStatuses(config)
}

// addStatuses adds the writers of statuses, if there is a Lease for the election of the writing
// replica.
func (p *plane) addStatuses(config *rest.Config) (err error) {
	namespace, name, ok := strings.Cut(p.settings.lease, "/")
	if !ok {
		return nil
	}
	p.statuses, err = configs.NewStatusWriter(p.configs, config, configs.StatusOptions{
		Logger: p.settings.log, Lease: name, LeaseNamespace: namespace,
	})
	if err != nil {
		return err
	}
	p.ofRoutes, err = gateways.NewStatusWriter(p.gateways, config, configs.StatusOptions{
		Logger: p.settings.log, Lease: name + "-gateways", LeaseNamespace: namespace,
	})
	if err != nil {
		return err
	}
	p.reporter = configs.NewServiceReporter(p.statuses, istio.ServiceEntry, p.registries)
	return nil
}

// drainTime is the time that clients have to move to another replica after the plane has become
// unready.
const drainTime = time.Second

// run runs the plane until ctx ends or a part fails.
func (p *plane) run(ctx context.Context) error {
	probes, err := startProbes(ctx, p.settings.probes, p.policies.Closed)
	if err != nil {
		return err
	}
	defer probes.stop()
	p.probing(probes.address)
	return (&configstore.Group{Logger: p.settings.log, Parts: p.parts(context.WithoutCancel(ctx), probes)}).Run(ctx)
}

// parts returns the parts from the sources to the server. The Group stops them in reverse order.
func (p *plane) parts(ctx context.Context, probes *probes) []configstore.Part {
	parts := []configstore.Part{
		configstore.Runs("configs", p.merged.Run, p.merged),
		configstore.Runs("registries", p.registries.Run, p.registries),
		configstore.Runs("pushes", p.server.Run, nil),
		configstore.Runs("keys of tokens", p.policies.Run, nil),
		configstore.Runs("secrets", p.secrets.Run, nil),
	}
	if p.statuses != nil {
		parts = append(parts,
			configstore.Runs("statuses", p.statuses.Run, nil),
			configstore.Runs("statuses of the Gateway API", p.ofRoutes.Run, nil),
			configstore.Runs("statuses of ServiceEntries", p.reporter.Run, nil),
			configstore.Runs("rejections", func(stop <-chan struct{}) { refusals.Run(p.server, p.gateways, stop) }, nil),
		)
	}
	return append(parts, configstore.Part{Name: "xds", AfterSync: true, Run: func(stop <-chan struct{}) error {
		return p.serve(ctx, probes, stop)
	}})
}

// serve pushes the initial state, and serves xDS until stop is closed and clients had time to move to
// another replica.
func (p *plane) serve(ctx context.Context, probes *probes, stop <-chan struct{}) error {
	if err := p.server.Flush(ctx); err != nil {
		return fmt.Errorf("push the initial state: %w", err)
	}
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", p.settings.listen)
	if err != nil {
		return err
	}
	server := grpc.NewServer(ads.ServerOptions()...)
	p.server.Register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(lis) }()
	for _, e := range p.configs.Errors() {
		p.settings.log.Warn("serving without it", slog.Any("error", e))
	}
	for _, err := range p.gateways.Errors() {
		p.settings.log.Warn("serving without it", slog.Any("error", err))
	}
	p.settings.log.Info("serving", slog.String("xds", lis.Addr().String()), slog.Int("services", len(p.registries.Services())))
	probes.ready.Store(true)
	p.started(lis.Addr().String())
	select {
	case err := <-ended:
		return err
	case <-stop:
	}
	probes.ready.Store(false)
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	<-timer.C
	server.Stop()
	return <-ended // nil if the server was stopped
}
