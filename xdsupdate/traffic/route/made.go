// SPDX-License-Identifier: Apache-2.0

package route

import (
	"iter"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/pilotkit/pilotkit/internal/limit"
)

// Made is a resource as a proxy receives it, with the record of the objects behind its parts. The
// zero value stands for no resource.
type Made struct {
	// Message is the resource. It must not change.
	Message proto.Message
	// Routes returns the origins of the routes of a virtual host of a route configuration, in their
	// order, or nil if they are unknown. It may be called from any goroutine. Nil knows none.
	Routes func(host *routev3.VirtualHost) []Origin
	// Chains are the origins of the filter chains of a listener, in their order, or nil.
	Chains []Origin
}

// at returns an element of a list that may be shorter.
func at(list []Origin, i int) Origin {
	if i < len(list) {
		return list[i]
	}
	return Origin{}
}

// Resources are the resources of one proxy in one state. They are immutable, and safe for
// concurrent use. The messages that a proxy has received over xDS are such resources, too.
type Resources interface {
	// Names yields the names of a type, in any order.
	Names(typeURL string) iter.Seq[string]
	// Has reports whether Names yields a name.
	Has(typeURL, name string) bool
	// Resource returns a resource. It is called when the resource is first needed, and also for
	// names that Names does not yield.
	Resource(typeURL, name string) Made
}

// Changed are the resources that may differ between two states. Resources that are named and do not
// differ cost work; others must not differ.
type Changed struct {
	// Names are the names of single resources by type.
	Names map[string][]string
	// Types are types with resources that may all differ.
	Types map[string]bool
}

// Everything returns the change between two unrelated states.
func Everything() Changed {
	return Changed{Types: map[string]bool{listenerType: true, routeType: true, clusterType: true, assignmentType: true}}
}

// maxNames is the number of names of a type from which on all resources of the type may differ, so
// that the memory of a host that takes no states is bounded.
const maxNames limit.Size = 1000

// Merge adds the changes of a later state.
func (c *Changed) Merge(later Changed) {
	if c.Names == nil {
		c.Names, c.Types = make(map[string][]string), make(map[string]bool)
	}
	for typeURL, all := range later.Types {
		c.Types[typeURL] = c.Types[typeURL] || all
	}
	for typeURL, names := range later.Names {
		c.Names[typeURL] = append(c.Names[typeURL], names...)
		if len(c.Names[typeURL]) > maxNames.Get() {
			c.Types[typeURL] = true
		}
	}
	for typeURL, all := range c.Types {
		if all {
			delete(c.Names, typeURL)
		}
	}
}

// Empty reports whether nothing may differ.
func (c Changed) Empty() bool { return len(c.Names)+len(c.Types) == 0 }
