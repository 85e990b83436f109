// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/gatewayapi"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	registrymemory "github.com/pilotkit/pilotkit/registry/memory"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// ineffective records the parts of the accepted objects that change nothing for any client,
// provided that there are no other objects.
func (c *checker) ineffective(ctx context.Context) error {
	policies, converted, err := c.push(ctx)
	if err != nil {
		return fmt.Errorf("find out what has no effect: %w", err)
	}
	c.conditions(converted)
	for _, found := range policies.Ineffective() {
		c.noEffect(found)
	}
	return nil
}

// push returns the policies of a control plane without clients that has the accepted objects, after
// one push, and the configs and statuses for the Gateway API.
func (c *checker) push(ctx context.Context) (*traffic.Policies, *gatewayapi.Snapshot, error) {
	store := memory.Make(c.schemas)
	objects := memory.NewController(store)
	configs := gatewayapi.NewCache(objects, gatewayapi.CacheOptions{Options: gatewayapi.Options{Domain: c.opts.manifest.Domain}})
	registries := aggregate.NewController()
	policies := traffic.New(configs, traffic.Options{Domain: c.opts.manifest.Domain})
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		services := registrymemory.New(registrymemory.Options{Updater: updater, Provider: registry.Kubernetes})
		c.kubernetes.fill(services, c.opts.manifest.Domain, c.subsets())
		return services
	})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(configs, updater)
	})
	changes, err := c.referenced()
	if err != nil {
		return nil, nil, err
	}
	configs.Apply(changes...)
	if _, err := store.Apply(append(c.missingClasses(), c.accepted...)...); err != nil {
		return nil, nil, fmt.Errorf("store what is valid: %w", err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { configs.Run(stop) }) //nolint:contextcheck // Run has a stop channel
	defer running.Wait()
	defer close(stop)
	err = configstore.WaitForSync(ctx, configs)
	if err == nil {
		err = configs.Flush(ctx)
	}
	if err == nil {
		err = server.Flush(ctx)
	}
	return policies, configs.Snapshot(), err
}

// subsets returns the labels of all subsets.
func (c *checker) subsets() (out []registry.Labels) {
	for _, m := range c.accepted {
		if rule, ok := m.Config.Spec.(*networking.DestinationRule); ok {
			for _, s := range rule.GetSubsets() {
				out = append(out, s.GetLabels())
			}
		}
	}
	return out
}

// noEffect records a part of an object of the input that changes nothing.
func (c *checker) noEffect(found traffic.Ineffective) {
	key := configstore.ConfigKey{Kind: found.Kind, Namespace: found.Namespace, Name: found.Name}
	d, ours := c.defined[key]
	if !ours {
		return
	}
	f := about(key)
	f.Severity, f.Reason, f.Field, f.Message = severityWarning, reasonNoEffect, found.Field, found.Reason
	f.location, f.file = d.position(found.Field), d.file
	c.report.add(f)
}

// position returns the place of a field. It parses the text again, because the parsed trees of all
// documents would need fifty times as much memory.
func (d *definition) position(field string) location {
	at := d.location
	docs, _ := d.text.Parse()
	for _, doc := range docs {
		if doc.Item == d.item && doc.Line+d.text.Lines == d.Line && doc.Column == d.Column {
			line, column := doc.Position(field)
			at.Line, at.Column = line+d.text.Lines, column
		}
	}
	return at
}
