// SPDX-License-Identifier: Apache-2.0

package route

import (
	"errors"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// newMatch compiles the match of a route. An error means that it cannot be evaluated here.
func newMatch(m *routev3.RouteMatch) (condition, error) {
	if m.GetRuntimeFraction() != nil || m.GetGrpc() != nil || m.GetTlsContext() != nil || len(m.GetFilterState())+len(m.GetCookies()) > 0 {
		return nil, errors.New("a match by other properties than the path, headers, parameters and metadata")
	}
	path, err := newPath(m)
	if err != nil {
		return nil, err
	}
	list := []condition{path}
	for _, more := range []func() ([]condition, error){
		func() ([]condition, error) { return conditions(m.GetHeaders(), newHeader) },
		func() ([]condition, error) { return conditions(m.GetQueryParameters(), newParameter) },
		func() ([]condition, error) { return conditions(m.GetDynamicMetadata(), newMetadata) },
	} {
		compiled, err := more()
		if err != nil {
			return nil, err
		}
		list = append(list, compiled...)
	}
	return every(list), nil
}

// newPath compiles the match of the path.
func newPath(m *routev3.RouteMatch) (condition, error) {
	fold := m.GetCaseSensitive() != nil && !m.GetCaseSensitive().GetValue()
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		if p.Prefix == "/" {
			return func(c *call) bool { return strings.HasPrefix(c.bare, "/") }, nil
		}
		return ofPath(beginning(p.Prefix, fold), nil)
	case *routev3.RouteMatch_Path:
		return ofPath(exactly(p.Path, fold), nil)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		begins, n := beginning(p.PathSeparatedPrefix, fold), len(p.PathSeparatedPrefix)
		return func(c *call) bool { return begins(c.bare) && (len(c.bare) == n || c.bare[n] == '/') }, nil
	case *routev3.RouteMatch_SafeRegex:
		return ofPath(wholly(p.SafeRegex.GetRegex()))
	default:
		return nil, fmt.Errorf("a match of paths of the kind %T", p)
	}
}

// newParameter compiles the match of a query parameter. Envoy compares the first value, and decodes
// nothing.
func newParameter(m *routev3.QueryParameterMatcher) (condition, error) {
	name := m.GetName()
	matches := func(string) bool { return true }
	if s := m.GetStringMatch(); s != nil {
		var err error
		if matches, err = newText(s); err != nil {
			return nil, fmt.Errorf("the query parameter %.100q: %w", name, err)
		}
	}
	return func(c *call) bool {
		value, ok := c.parameter(name)
		return ok && matches(value)
	}, nil
}

// parameter returns the first value of a query parameter.
func (c *call) parameter(name string) (string, bool) {
	_, query, _ := strings.Cut(c.Path, "?")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}
