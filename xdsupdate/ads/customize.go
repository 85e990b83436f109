// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/failure"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/resource"
	"github.com/pilotkit/pilotkit/xdsupdate/ads/internal/services"
)

// Customizer changes resources of services before they are encoded, for instance to add a TLS
// context or a timeout to a cluster. It costs only its own work, once for each state of a resource
// and scope, and only if a client is subscribed.
//
// It applies to the resources of one port of one service: clusters, load assignments, API listeners
// and their route configurations. It does not apply to the HTTP route configurations by port,
// because these belong to many services.
type Customizer struct {
	// Name identifies the customizer in errors.
	Name string
	// TypeURL is the type of the resources.
	TypeURL string
	// Scope returns the properties of a view on which the customized resource depends: proxies
	// whose views have equal scopes share the resource. The value must be comparable. If Scope is
	// nil, all views that share the resource share the customized one.
	Scope func(view View, service *registry.Service, port *registry.Port) any
	// Customize changes the message in place, but not its name. If it returns an error or panics,
	// or if the message becomes invalid (ValidateAll), the last good state of the resource stays,
	// and the error is logged. It is called on any goroutine, with no lock held.
	Customize func(c Customization) error
	// Changed returns the hosts whose resources have to be customized again after a push, because
	// data that the customizer read for them has changed. Hosts with changed services or endpoints
	// are customized again in any case. A nil function returns none.
	Changed func(push *PushContext) iter.Seq[registry.Hostname]
}

// Customization is one resource to be customized.
type Customization struct {
	// Scope is the result of Customizer.Scope, or nil without it.
	Scope   any
	Service *registry.Service
	Port    *registry.Port
	// Message is the resource; the customizer owns it during the call.
	Message proto.Message
}

// customizers are called in order.
type customizers []Customizer

var _ services.Customizer = customizers(nil)

// ofServices returns the view for the resources of services.
func (c customizers) ofServices(v View) services.View {
	out := v.ofServices()
	if len(c) > 0 {
		out.Scope = func(typeURL string, svc *registry.Service, p *registry.Port) (any, error) {
			return c.scope(v, typeURL, svc, p)
		}
	}
	return out
}

// scopes combines the scopes of two customizers.
type scopes struct{ first, second any }

// scope returns the combined scope of all customizers of a type, or nil if there is none.
func (c customizers) scope(v View, typeURL string, svc *registry.Service, p *registry.Port) (any, error) {
	var out any
	for _, one := range c {
		if one.TypeURL != typeURL || one.Scope == nil {
			continue
		}
		var scope any
		err := one.part().Call(func() error {
			scope = one.Scope(v, svc, p)
			return checkKey(scope)
		})
		if err != nil {
			return nil, err
		}
		out = scopes{out, scope}
	}
	return out, nil
}

func (c Customizer) part() failure.Part { return failure.Part{In: failure.InCustomizer, Name: c.Name} }

// Changes reports whether any customizer is for a type.
func (c customizers) Changes(typeURL string) bool {
	for _, one := range c {
		if one.TypeURL == typeURL {
			return true
		}
	}
	return false
}

// Customize calls the customizers of a resource.
func (c customizers) Customize(typeURL string, scope any, svc *registry.Service, p *registry.Port, m proto.Message) error {
	var of []any // the scopes, the last one first
	for nested := scope; nested != nil; nested = nested.(scopes).first {
		of = append(of, nested.(scopes).second)
	}
	for _, one := range c {
		if one.TypeURL != typeURL {
			continue
		}
		args := Customization{Service: svc, Port: p, Message: m}
		if one.Scope != nil {
			args.Scope, of = of[len(of)-1], of[:len(of)-1]
		}
		err := one.part().Call(func() error {
			if err := one.Customize(args); err != nil {
				return err
			}
			return resource.Validate(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
