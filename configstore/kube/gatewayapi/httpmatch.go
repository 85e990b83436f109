// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/pilotkit/pilotkit/internal/envoycheck/re2"
	"github.com/pilotkit/pilotkit/internal/excerpt"
)

func exact(value string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: value}}
}

func prefix(value string) *networking.StringMatch {
	return &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: value}}
}

// matching returns the match of a regular expression that Envoys compile. They refuse the empty one.
func matching(expression string) (*networking.StringMatch, error) {
	if err := re2.Check(expression); err != nil || expression == "" {
		return nil, fmt.Errorf("the regular expression %q does not compile", excerpt.Cut(expression))
	}
	return &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: expression}}, nil
}

// errMatch reports a match of an unknown type, and errNoName a match without a name.
var (
	errMatch  = errors.New("a match has an unknown type")
	errNoName = errors.New("a match of a header or query parameter has no name")
)

// httpMatch converts one match of an HTTPRoute.
func httpMatch(m *gatewayv1.HTTPRouteMatch) (*networking.HTTPMatchRequest, error) {
	out := &networking.HTTPMatchRequest{}
	var err error
	if out.Uri, err = pathMatch(m.Path); err != nil {
		return nil, err
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		if err := addHeader(out, string(h.Name), string(deref(h.Type, gatewayv1.HeaderMatchExact)), h.Value); err != nil {
			return nil, err
		}
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		match, err := namedMatch(string(q.Name), string(deref(q.Type, gatewayv1.QueryParamMatchExact)), q.Value)
		if err != nil {
			return nil, err
		}
		if out.QueryParams == nil {
			out.QueryParams = map[string]*networking.StringMatch{}
		}
		if _, again := out.QueryParams[string(q.Name)]; !again {
			out.QueryParams[string(q.Name)] = match
		}
	}
	if m.Method != nil {
		out.Method = exact(string(*m.Method))
	}
	return out, nil
}

// pathMatch converts the match of a path. Prefixes match whole elements, so a trailing slash is
// insignificant.
func pathMatch(p *gatewayv1.HTTPPathMatch) (*networking.StringMatch, error) {
	if p == nil {
		return prefix("/"), nil
	}
	value := deref(p.Value, "/")
	switch deref(p.Type, gatewayv1.PathMatchPathPrefix) {
	case gatewayv1.PathMatchExact:
		return exact(value), nil
	case gatewayv1.PathMatchPathPrefix:
		if value = strings.TrimRight(value, "/"); value == "" {
			value = "/"
		}
		return prefix(value), nil
	case gatewayv1.PathMatchRegularExpression:
		return matching(value)
	default:
		return nil, errMatch
	}
}

// namedMatch converts the match of a header's or query parameter's value.
func namedMatch(name, kind, value string) (*networking.StringMatch, error) {
	if name == "" {
		return nil, errNoName
	}
	switch kind {
	case string(gatewayv1.HeaderMatchExact):
		return exact(value), nil
	case string(gatewayv1.HeaderMatchRegularExpression):
		return matching(value)
	default:
		return nil, errMatch
	}
}

// addHeader adds the match of a header. Header names are case-insensitive; of several matches of
// one header the first counts.
func addHeader(out *networking.HTTPMatchRequest, name, kind, value string) error {
	match, err := namedMatch(name, kind, value)
	if err != nil {
		return err
	}
	for other := range out.Headers {
		if strings.EqualFold(other, name) {
			return nil
		}
	}
	if out.Headers == nil {
		out.Headers = map[string]*networking.StringMatch{}
	}
	out.Headers[name] = match
	return nil
}

// grpcMatch converts one match of a GRPCRoute, or returns nil if it matches everything.
func grpcMatch(m *gatewayv1.GRPCRouteMatch) (*networking.HTTPMatchRequest, error) {
	if m.Method == nil && len(m.Headers) == 0 {
		return nil, nil //nolint:nilnil // as said
	}
	out := &networking.HTTPMatchRequest{}
	var err error
	if out.Uri, err = methodMatch(m.Method); err != nil {
		return nil, err
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		if err := addHeader(out, string(h.Name), string(deref(h.Type, gatewayv1.GRPCHeaderMatchExact)), h.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// methodMatch converts the match of a method: the path of a call is /SERVICE/METHOD.
func methodMatch(m *gatewayv1.GRPCMethodMatch) (*networking.StringMatch, error) {
	if m == nil {
		return nil, nil //nolint:nilnil // any path
	}
	service, method := deref(m.Service, ""), deref(m.Method, "")
	switch deref(m.Type, gatewayv1.GRPCMethodMatchExact) {
	case gatewayv1.GRPCMethodMatchExact:
		switch {
		case service != "" && method != "":
			return exact("/" + service + "/" + method), nil
		case service != "":
			return prefix("/" + service + "/"), nil
		case method != "":
			return matching("/[^/]+/" + regexp.QuoteMeta(method))
		}
		return nil, nil //nolint:nilnil // any path
	case gatewayv1.GRPCMethodMatchRegularExpression:
		if service == "" {
			service = "[^/]+"
		}
		if method == "" {
			method = ".+"
		}
		return matching("/" + asPart(service) + "/" + asPart(method))
	default:
		return nil, errMatch
	}
}

// asPart returns a regular expression whose alternatives end with it where it is part of another one.
func asPart(expression string) string {
	if strings.Contains(expression, "|") {
		return "(?:" + expression + ")"
	}
	return expression
}
