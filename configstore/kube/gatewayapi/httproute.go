// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// failed is the response status for requests of a rule that cannot be served.
const failed = 500

// rules are the HTTP routes of a route object, one for each match of each rule, in order.
type rules struct {
	routes []*networking.HTTPRoute
	// dropped contains the problems of rules that respond with 500 or are dropped. total is the
	// number of all rules.
	dropped []string
	total   int
	// badHosts contains the problems of dropped hostnames.
	badHosts []string
	// unresolved is the first reference that cannot be resolved.
	unresolved problem
}

// drop records that a rule is not served.
func (r *rules) drop(i int, why string) {
	r.dropped = append(r.dropped, "rule "+strconv.Itoa(i)+": "+why)
}

// invalid returns the reason why a route is not accepted at all, if no rule is left.
func (r *rules) invalid() problem {
	if len(r.dropped) == 0 || len(r.dropped) < r.total {
		return problem{}
	}
	return problem{string(gatewayv1.RouteReasonUnsupportedValue), r.droppedText()}
}

// partial returns the reason why a route is accepted only in part.
func (r *rules) partial() problem {
	if len(r.dropped)+len(r.badHosts) == 0 || r.invalid().is() {
		return problem{}
	}
	return problem{string(gatewayv1.RouteReasonUnsupportedValue), r.droppedText()}
}

func (r *rules) droppedText() string {
	return "Dropped Rule: " + strings.Join(slices.Concat(r.dropped, r.badHosts), "; ")
}

// rule contains the common fields of a converted rule of an HTTPRoute or a GRPCRoute.
type rule struct {
	name    *gatewayv1.SectionName
	matches []*networking.HTTPMatchRequest // nil matches everything
	action  *networking.HTTPRoute
}

// add adds a rule.
func (r *rules) add(key Key, i int, of rule) {
	of.action.Name = string(deref(of.name, ""))
	if of.action.Name == "" {
		of.action.Name = key.Namespace + "." + key.Name + "." + strconv.Itoa(i)
	}
	if len(of.matches) == 0 {
		r.routes = append(r.routes, of.action)
	}
	for _, match := range of.matches {
		r.routes = append(r.routes, withMatch(of.action, match))
		if preflight := preflightOf(of.action, match); preflight != nil {
			r.routes = append(r.routes, preflight)
		}
	}
}

// withMatch returns a copy of a route with one match; nil matches everything. The copy is shallow.
func withMatch(of *networking.HTTPRoute, match *networking.HTTPMatchRequest) *networking.HTTPRoute {
	out := &networking.HTTPRoute{
		Name: of.Name, Route: of.Route, Redirect: of.Redirect, DirectResponse: of.DirectResponse, Rewrite: of.Rewrite,
		Timeout: of.Timeout, Retries: of.Retries, Mirrors: of.Mirrors, CorsPolicy: of.CorsPolicy, Headers: of.Headers,
	}
	if match != nil {
		out.Match = []*networking.HTTPMatchRequest{match}
	}
	return out
}

// convertHTTPRoute converts the rules of an HTTPRoute.
func (r *resolver) convertHTTPRoute(o *gatewayv1.HTTPRoute) *rules {
	out := &rules{total: len(o.Spec.Rules)}
	for i := range o.Spec.Rules {
		spec := &o.Spec.Rules[i]
		matches, err := httpMatches(spec.Matches)
		if err != nil {
			out.drop(i, err.Error())
			continue
		}
		action, wrong := r.httpAction(spec)
		r.addRule(out, keyOf(o), i, rule{spec.Name, matches, action}, wrong)
	}
	out.unresolved = r.unresolved
	return out
}

// addRule adds a rule. If its action has a problem, or contains texts that proxies reject, requests
// for the rule get the response 500. If its matches or its name contain such texts, the rule is
// dropped.
func (r *resolver) addRule(out *rules, key Key, i int, of rule, wrong problem) {
	for _, match := range of.matches {
		if why := r.c.badText(withMatch(&networking.HTTPRoute{Name: string(deref(of.name, ""))}, match)); why != "" {
			out.drop(i, why)
			return
		}
	}
	r.note(wrong)
	why := wrong.message
	if !wrong.is() {
		why = r.c.badText(of.action)
	}
	if why != "" {
		out.drop(i, why)
		of.action = refused()
	}
	out.add(key, i, of)
}

func httpMatches(list []gatewayv1.HTTPRouteMatch) ([]*networking.HTTPMatchRequest, error) {
	if len(list) == 0 { // the default of the Gateway API
		list = []gatewayv1.HTTPRouteMatch{{}}
	}
	var out []*networking.HTTPMatchRequest
	for i := range list {
		match, err := httpMatch(&list[i])
		if err != nil {
			return nil, err
		}
		out = append(out, match)
	}
	return out, nil
}

// refused returns the action of a rule that cannot be served.
func refused() *networking.HTTPRoute {
	return &networking.HTTPRoute{DirectResponse: &networking.HTTPDirectResponse{Status: failed}}
}

func (r *resolver) httpAction(spec *gatewayv1.HTTPRouteRule) (*networking.HTTPRoute, problem) {
	out := &networking.HTTPRoute{}
	for i := range spec.Filters {
		if wrong := r.addFilter(out, &spec.Filters[i]); wrong.is() {
			return nil, wrong
		}
	}
	setRetries(out, spec.Retry)
	setTimeouts(out, spec.Timeouts)
	backends := weighted(spec.BackendRefs, func(b *gatewayv1.HTTPBackendRef) *int32 { return b.Weight })
	if out.Redirect != nil {
		return out, problem{}
	}
	if len(backends) == 0 {
		out.DirectResponse = &networking.HTTPDirectResponse{Status: failed}
		return out, problem{}
	}
	for _, b := range backends {
		headers, wrong := backendHeaders(b.Filters)
		if wrong.is() {
			return nil, wrong
		}
		to, wrong := r.destination(&b.BackendObjectReference)
		r.note(wrong)
		out.Route = append(out.Route, &networking.HTTPRouteDestination{
			Destination: to, Weight: share(b.Weight, len(backends)), Headers: headers,
		})
	}
	return out, problem{}
}

// defaultAttempts is the number of retries if a rule does not set it.
const defaultAttempts = 2

func setRetries(out *networking.HTTPRoute, retry *gatewayv1.HTTPRouteRetry) {
	if retry == nil {
		return
	}
	out.Retries = &networking.HTTPRetry{Attempts: int32(deref(retry.Attempts, defaultAttempts))} //nolint:gosec // few
	if backoff := durationOf(retry.Backoff); backoff > 0 {
		out.Retries.Backoff = durationpb.New(backoff)
	}
	if out.Retries.Attempts == 0 {
		return
	}
	on := []string{"connect-failure", "refused-stream", "unavailable", "cancelled"}
	for _, code := range retry.Codes {
		on = append(on, strconv.Itoa(int(code)))
	}
	out.Retries.RetryOn = strings.Join(on, ",")
}

// setTimeouts sets the timeouts of a route. A request without retries has one attempt, so that the
// timeout of the attempt is the timeout of the request.
func setTimeouts(out *networking.HTTPRoute, timeouts *gatewayv1.HTTPRouteTimeouts) {
	if timeouts == nil {
		return
	}
	if request := durationOf(timeouts.Request); request > 0 {
		out.Timeout = durationpb.New(request)
	}
	attempt := durationOf(timeouts.BackendRequest)
	switch {
	case attempt == 0:
	case out.Retries.GetAttempts() > 0:
		out.Retries.PerTryTimeout = durationpb.New(attempt)
	default:
		out.Timeout = durationpb.New(attempt)
	}
}

// durationOf parses a duration of the Gateway API, which has the syntax of Go. A malformed duration
// counts as unset; the API server rejects it.
func durationOf(d *gatewayv1.Duration) time.Duration {
	parsed, err := time.ParseDuration(string(deref(d, "0s")))
	if err != nil {
		return 0
	}
	return parsed
}
