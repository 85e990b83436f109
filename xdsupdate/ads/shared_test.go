// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// sharedProvider provides resources of one type that objects make together.
type sharedProvider struct {
	typeURL string
	updater xdsupdate.XDSUpdater
	// base is a value that each resource has without any object, or "".
	base string

	mu sync.Mutex
	// objects are the values of objects, by resource and name.
	objects map[string]map[string]string
	changed []ads.ChangedName
	made    int // by Without
}

func (p *sharedProvider) Name() string                          { return "shared" }
func (p *sharedProvider) Attach(updater xdsupdate.XDSUpdater)   { p.updater = updater }
func (p *sharedProvider) Group(*core.Node, *registry.Proxy) any { return nil }

func (p *sharedProvider) Provide(*ads.PushContext) (ads.Provided, ads.Changes) {
	p.mu.Lock()
	defer p.mu.Unlock()
	layer := sharedLayer{p, make(map[string]map[string]string)}
	for name, objects := range p.objects {
		layer.objects[name] = maps.Clone(objects)
	}
	changes := ads.Changes{Names: p.changed}
	p.changed = nil
	return layer, changes
}

// set gives objects values; "" deletes one.
func (p *sharedProvider) set(resource string, values map[string]string) {
	p.mu.Lock()
	if p.objects[resource] == nil {
		p.objects[resource] = make(map[string]string)
	}
	keys := make(map[xdsupdate.ConfigKey]struct{})
	for object, value := range values {
		keys[objectKey(object)] = struct{}{}
		if value == "" {
			delete(p.objects[resource], object)
		} else {
			p.objects[resource][object] = value
		}
	}
	if len(p.objects[resource]) == 0 {
		delete(p.objects, resource)
	}
	p.changed = append(p.changed, ads.ChangedName{TypeURL: p.typeURL, Name: resource})
	p.mu.Unlock()
	if p.updater != nil {
		p.updater.ConfigUpdate(&xdsupdate.PushRequest{Full: true, ConfigsUpdated: keys})
	}
}

func objectKey(name string) configstore.ConfigKey {
	return configstore.ConfigKey{Kind: configstore.GroupVersionKind{Kind: "Object"}, Name: name, Namespace: "ns"}
}

// sharedLayer is the state of a sharedProvider at one moment.
type sharedLayer struct {
	of      *sharedProvider
	objects map[string]map[string]string
}

func (l sharedLayer) Names(_ ads.View, typeURL string) (iter.Seq[string], bool) {
	if typeURL != l.of.typeURL {
		return nil, false
	}
	return maps.Keys(l.objects), true
}

func (l sharedLayer) Covers(_ ads.View, typeURL, name string) (covered, only bool) {
	_, covered = l.objects[name]
	return covered && typeURL == l.of.typeURL, typeURL == l.of.typeURL
}

func (l sharedLayer) Lookup(_ ads.View, typeURL, name string) ads.Answer {
	objects, ok := l.objects[name]
	switch {
	case typeURL != l.of.typeURL:
		return ads.Answer{Next: true}
	case !ok:
		return ads.Answer{}
	}
	return ads.Answer{
		Build: func() (proto.Message, error) {
			m, _, err := l.build(name, objects, func(ads.Contribution) ads.Omission { return ads.Included })
			return m, err
		},
		Without: func(out func(ads.Contribution) ads.Omission) (proto.Message, []ads.Contribution, error) {
			l.of.mu.Lock()
			l.of.made++
			l.of.mu.Unlock()
			return l.build(name, objects, out)
		},
	}
}

// build builds the resource: each object adds "NAME=VALUE", or "NAME=failing". Objects with the
// value "broken" make it fail. The value of an object that is left out stays if it has to be left
// out more deeply.
func (l sharedLayer) build(
	name string, objects map[string]string, out func(ads.Contribution) ads.Omission,
) (m proto.Message, all []ads.Contribution, err error) {
	var values []string
	if l.of.base != "" {
		values = append(values, "base="+l.of.base)
	}
	for _, object := range slices.Sorted(maps.Keys(objects)) {
		c := ads.Contribution{Object: objectKey(object), State: objects[object]}
		value := objects[object]
		all = append(all, c)
		switch how := out(c); {
		case how == ads.Absent:
			continue
		case how >= omissionOf(value):
			value = "failing"
		}
		if value == "broken" {
			err = errBroken
		}
		values = append(values, object+"="+value)
	}
	if err != nil {
		return nil, all, err
	}
	if l.of.typeURL == envoy.ListenerType {
		return &listenerv3.Listener{Name: name, StatPrefix: strings.Join(values, " ")}, all, nil
	}
	return &routev3.RouteConfiguration{Name: name, InternalOnlyHeaders: values}, all, nil
}

// omissionOf returns how much of an object has to be left out before a client that rejects its value accepts the
// resource.
func omissionOf(value string) ads.Omission {
	switch {
	case strings.HasPrefix(value, "bad-match"):
		return ads.Unmatched
	case strings.HasPrefix(value, "bad-host"):
		return ads.Absent
	default:
		return ads.Failing
	}
}

// valuesOf returns the values in a resource, by object.
func valuesOf(m proto.Message) map[string]string {
	var values []string
	switch m := m.(type) {
	case *listenerv3.Listener:
		values = strings.Fields(m.GetStatPrefix())
	case *routev3.RouteConfiguration:
		values = m.GetInternalOnlyHeaders()
	}
	out := make(map[string]string)
	for _, v := range values {
		object, value, _ := strings.Cut(v, "=")
		out[object] = value
	}
	return out
}
