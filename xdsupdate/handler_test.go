// SPDX-License-Identifier: Apache-2.0

package xdsupdate_test

import (
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// gateway returns a config; edits change it.
func gateway(edits ...func(*configstore.Config)) configstore.Config {
	c := configstore.Config{
		Meta: configstore.Meta{
			GroupVersionKind: configstore.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "Gateway"},
			Name:             "g", Namespace: "ns", ResourceVersion: "1",
		},
		Spec: &networking.Gateway{Selector: map[string]string{"app": "a"}},
	}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

func labelled(key string) func(*configstore.Config) {
	return func(c *configstore.Config) { c.Labels = map[string]string{key: "x"} }
}

func annotated(key string) func(*configstore.Config) {
	return func(c *configstore.Config) { c.Annotations = map[string]string{key: "x"} }
}

func selecting(app string) func(*configstore.Config) {
	return func(c *configstore.Config) { c.Spec = &networking.Gateway{Selector: map[string]string{"app": app}} }
}

func ofGroup(group string) func(*configstore.Config) {
	return func(c *configstore.Config) { c.GroupVersionKind.Group = group }
}

func TestConfigHandler(t *testing.T) {
	version := func(c *configstore.Config) { c.ResourceVersion, c.Generation = "2", 7 }
	const push = "ConfigUpdate full push of Gateway/ns/g (config 1)"
	tests := []struct {
		name      string
		old, curr configstore.Config
		event     configstore.Event
		want      []string
		reported  string
	}{
		{"add", configstore.Config{}, gateway(), configstore.EventAdd, []string{push}, "add g"},
		{"delete", configstore.Config{}, gateway(), configstore.EventDelete, []string{push}, "delete g"},
		{"spec changed", gateway(), gateway(selecting("b")), configstore.EventUpdate, []string{push}, "add g"},
		{"equal spec", gateway(), gateway(selecting("a"), version), configstore.EventUpdate, nil, "add g"},
		{"foreign label", gateway(), gateway(labelled("team")), configstore.EventUpdate, nil, "add g"},
		{"foreign annotation", gateway(annotated("team")), gateway(), configstore.EventUpdate, nil, "add g"},
		{"label", gateway(), gateway(labelled("istio.io/rev")), configstore.EventUpdate, []string{push}, "add g"},
		{
			"annotation, before", gateway(annotated("networking.istio.io/exportTo")), gateway(),
			configstore.EventUpdate,
			[]string{push},
			"add g",
		},
		{
			"another group", gateway(ofGroup("gateway.networking.k8s.io")), gateway(ofGroup("gateway.networking.k8s.io")),
			configstore.EventUpdate,
			[]string{push},
			"add g",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r xdstest.Recorder
			var reported reporter
			xdsupdate.ConfigHandler(&r, &reported)(tt.old, tt.curr, tt.event)
			r.Expect(t, tt.want...)
			if !slices.Equal(reported, []string{tt.reported}) {
				t.Errorf("reported %q, want %q", reported, tt.reported)
			}
			xdsupdate.ConfigHandler(&r, nil)(tt.old, tt.curr, tt.event)
			r.Expect(t, tt.want...)
		})
	}
}

type reporter []string

func (r *reporter) AddInProgressResource(c configstore.Config) { *r = append(*r, "add "+c.Name) }

func (r *reporter) DeleteInProgressResource(c configstore.Config) { *r = append(*r, "delete "+c.Name) }

func TestServiceHandler(t *testing.T) {
	svc := func(host registry.Hostname, address string) *registry.Service {
		return &registry.Service{
			Hostname: host, DefaultAddress: address, Attributes: registry.ServiceAttributes{Namespace: "ns"},
		}
	}
	tests := []struct {
		name       string
		prev, curr *registry.Service
		event      registry.Event
		want       []string
	}{
		{"add", nil, svc("a", "1"), registry.EventAdd, []string{"ConfigUpdate full push of ServiceEntry/ns/a (service 1)"}},
		{"delete", nil, svc("a", "1"), registry.EventDelete, []string{"ConfigUpdate full push of ServiceEntry/ns/a (service 1)"}},
		{"changed", svc("a", "1"), svc("a", "2"), registry.EventUpdate, []string{"ConfigUpdate full push of ServiceEntry/ns/a (service 1)"}},
		{
			"renamed", svc("a", "1"), svc("b", "1"), registry.EventUpdate,
			[]string{"ConfigUpdate full push of ServiceEntry/ns/a,ServiceEntry/ns/b (service 1)"},
		},
		{"unchanged", svc("a", "1"), svc("a", "1"), registry.EventUpdate, nil},
		{
			"updated, nothing known of before", nil, svc("a", "1"), registry.EventUpdate,
			[]string{"ConfigUpdate full push of ServiceEntry/ns/a (service 1)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r xdstest.Recorder
			xdsupdate.ServiceHandler(&r)(tt.prev, tt.curr, tt.event)
			r.Expect(t, tt.want...)
		})
	}
}

// TestHandlersWithoutUpdater: nil is Discard.
func TestHandlersWithoutUpdater(t *testing.T) {
	c := configstore.Config{}
	xdsupdate.ConfigHandler(nil, nil)(c, c, configstore.EventAdd)
	xdsupdate.ServiceHandler(nil)(nil, &registry.Service{}, registry.EventAdd)
}
