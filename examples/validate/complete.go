// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
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
	policies, err := c.push(ctx)
	if err != nil {
		return fmt.Errorf("find out what has no effect: %w", err)
	}
	for _, found := range policies.Ineffective() {
		c.noEffect(found)
	}
	return nil
}

// push returns the policies of a control plane without clients that has the accepted objects, after
// one push.
func (c *checker) push(ctx context.Context) (*traffic.Policies, error) {
	store := memory.Make(c.schemas)
	configs := memory.NewController(store)
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
	if _, err := store.Apply(c.accepted...); err != nil {
		return nil, fmt.Errorf("store what is valid: %w", err)
	}
	for _, m := range c.kubernetes.derived() {
		_, _ = store.Apply(m) // No policy is for one with an invalid name.
	}
	configs.Drain()
	return policies, server.Flush(ctx)
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
