// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/xdsbuild"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// Clients reject a route configuration or a listener as a whole, even if only one of several
// contributing objects is at fault. The contribution of each object is therefore validated
// separately (xdsbuild.Check). A route that fails validation answers with 500, a filter chain that
// fails it is left out, and the rest is sent. Each such part is reported by a LeftOutError that
// accompanies the resource. The server reports these errors. Policies.Ineffective finds them
// without any client.

// LeftOutError says that a part of an object is left out of a resource, or answered with an error
// in it, because clients would reject the resource. Policies returns such errors, joined with
// others, together with the resource, and the server reports them.
type LeftOutError struct {
	Ineffective
	// Err is the reason, without the consequences for the part.
	Err error
}

// Error returns the text of Ineffective.
func (e *LeftOutError) Error() string { return e.String() }

// Unwrap returns Err.
func (e *LeftOutError) Unwrap() error { return e.Err }

// leftOut returns the error for a part of an object that is left out. An empty field stands for the
// whole object.
func leftOut(c *configstore.Config, field string, reason error) error {
	return &LeftOutError{
		Ineffective{Kind: c.GroupVersionKind, Namespace: c.Namespace, Name: c.Name, Field: field, Reason: reason.Error()}, reason,
	}
}

// Errors that describe the consequences for the part.

func failedRequests(reason error) error {
	return fmt.Errorf("its requests are answered with 500: %w", reason)
}

func closedConnections(reason error) error {
	return fmt.Errorf("its connections are closed: %w", reason)
}

func noCluster(name string, reason error) error {
	return fmt.Errorf("cluster %s is left out: %w", name, reason)
}

func notHashed(name string, reason error) error {
	return fmt.Errorf("the requests to cluster %s are not hashed: %w", name, reason)
}

// leftOutRules collects the errors for the routes of a VirtualService, at most one for each rule.
type leftOutRules struct {
	of *objects.VirtualService
	// places are the origins of the rules, including rules of delegates.
	places map[*networking.HTTPRoute]objects.RulePlace
	last   *networking.HTTPRoute
	found  []error
}

func (l *leftOutRules) add(rule *networking.HTTPRoute, reason error) {
	if rule == l.last {
		return
	}
	l.last = rule
	l.addAt(l.places[rule], reason)
}

func (l *leftOutRules) addAt(place objects.RulePlace, reason error) {
	if place.Delegate != nil {
		reason = fmt.Errorf("delegate %s: %w", place.Delegate, reason)
	}
	l.found = append(l.found, leftOut(l.of.Config, objects.Element("spec.http", place.At), failedRequests(reason)))
}

// checkedRoutes returns the routes that build returns or, if it panics, routes that fail all
// requests, with an error.
func checkedRoutes(scope *xdsbuild.RouteScope, v *objects.VirtualService, build func() []*routev3.Route) (routes []*routev3.Route, err error) {
	if p := guard.Call(func() { routes = build() }); p != nil {
		return scope.FailingRoutes(), leftOut(v.Config, "spec.http", p)
	}
	return routes, nil
}
