// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/xdsupdate"
)

// Generator makes resources of one type besides the built-in ones, or instead of
// them.
type Generator interface {
	// Generate returns all resources that the generator makes for proxies of a
	// view. They are added to the built-in resources of the type; one with the
	// name of a built-in resource replaces it, and hides it if it has no message.
	//
	// It is called for each view when the first proxy of that view comes, with a
	// request that is Forced, and then after every push with the request of the
	// push. If it returns changed as false, what it returned before stays and the
	// resources are ignored. Calls are made one at a time; no lock is held.
	// Messages must not be modified afterwards; names must not repeat.
	Generate(view View, req *xdsupdate.PushRequest) (resources []Resource, changed bool)
}

// Resource is a resource that a Generator made.
type Resource struct {
	// Name is what clients subscribe to.
	Name string
	// Message is the resource, of the type that the generator is for; nil hides
	// the built-in resource of this name.
	Message proto.Message
}

// GeneratorFunc is a function as a Generator.
type GeneratorFunc func(view View, req *xdsupdate.PushRequest) (resources []Resource, changed bool)

// Generate calls f.
func (f GeneratorFunc) Generate(view View, req *xdsupdate.PushRequest) ([]Resource, bool) {
	return f(view, req)
}

// overlay turns what a generator made into resources.
func overlay(typeURL string, made []Resource) map[string]*resource {
	out := make(map[string]*resource, len(made))
	for _, m := range made {
		if m.Message == nil {
			out[m.Name] = nil
			continue
		}
		out[m.Name] = &resource{typeURL: typeURL, name: m.Name, build: func() proto.Message { return m.Message }}
	}
	return out
}
