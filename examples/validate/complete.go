// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// ineffective records the parts of the accepted objects that change nothing for any client,
// provided that there are no other objects. It asks a control plane without clients, after one
// push.
func (c *checker) ineffective(ctx context.Context) error {
	store := memory.Make(c.schemas)
	configs := memory.NewController(store)
	registries := aggregate.NewController()
	policies := traffic.New(configs, traffic.Options{Domain: c.opts.manifest.Domain})
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(configs, updater)
	})
	if _, err := store.Apply(c.accepted...); err != nil {
		return fmt.Errorf("store what is valid: %w", err)
	}
	configs.Drain()
	if err := server.Flush(ctx); err != nil {
		return fmt.Errorf("find out what has no effect: %w", err)
	}
	for _, found := range policies.Ineffective() {
		c.noEffect(found)
	}
	return nil
}

// noEffect records a part of an object that changes nothing.
func (c *checker) noEffect(found traffic.Ineffective) {
	key := configstore.ConfigKey{Kind: found.Kind, Namespace: found.Namespace, Name: found.Name}
	f := about(key)
	f.Severity, f.Reason, f.Field, f.Message = severityWarning, reasonNoEffect, found.Field, found.Reason
	if d, ok := c.defined[key]; ok {
		f.location, f.file = d.position(found.Field), d.file
	}
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
