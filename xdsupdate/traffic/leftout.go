// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
)

// What several objects make together, a route configuration or a listener, clients
// refuse as a whole. So the contribution of each object is checked by itself
// (envoy.Check): a route that does not pass answers with 500, a filter chain is left
// out, and the rest is sent. What is left out is a LeftOutError beside
// the resource, which the server reports; Policies.Ineffective finds it without any
// client.

// LeftOutError says what of an object is left out of a resource, or answered with an
// error in it, because clients would refuse the resource. What Policies provide comes
// with it, joined with others, and the server reports it.
type LeftOutError struct {
	Ineffective
	// Err is why, without what becomes of the part.
	Err error
}

// Error returns the text of Ineffective.
func (e *LeftOutError) Error() string { return e.String() }

// Unwrap returns Err.
func (e *LeftOutError) Unwrap() error { return e.Err }

// leftOut says why a part of an object is left out; an empty field stands for the
// object.
func leftOut(c *configstore.Config, field string, reason error) error {
	return &LeftOutError{
		Ineffective{Kind: c.GroupVersionKind, Namespace: c.Namespace, Name: c.Name, Field: field, Reason: reason.Error()}, reason,
	}
}

// What becomes of the part.

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

// leftOutRules collects what is left out of the routes of a VirtualService, once for
// each rule.
type leftOutRules struct {
	of *virtualService
	// places are those of the rules, delegates' among them.
	places map[*networking.HTTPRoute]rulePlace
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

func (l *leftOutRules) addAt(place rulePlace, reason error) {
	if place.delegate != nil {
		reason = fmt.Errorf("delegate %s: %w", place.delegate, reason)
	}
	l.found = append(l.found, leftOut(l.of.config, element("spec.http", place.at), failedRequests(reason)))
}

// checkedRoutes returns the routes that build makes of a VirtualService, or, if it
// panics, routes that fail all requests.
func checkedRoutes(scope *envoy.RouteScope, v *virtualService, build func() []*routev3.Route) (routes []*routev3.Route, err error) {
	if p := guard.Call(func() { routes = build() }); p != nil {
		return scope.FailingRoutes(), leftOut(v.config, "spec.http", p)
	}
	return routes, nil
}
