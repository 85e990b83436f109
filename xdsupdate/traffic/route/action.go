// SPDX-License-Identifier: Apache-2.0

package route

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// route is a compiled route.
type route struct {
	// matches is nil if the route cannot be evaluated because of err.
	matches condition
	err     error
	rule    *Rule
	act     func(*call, *Decision)
}

// newRoute compiles a route with the changes of headers of its virtual host and table.
func newRoute(r *routev3.Route, origin Origin, request, response []HeaderChange) route {
	b := routeBuilder{
		message: r, rule: &Rule{Origin: origin, Route: r.GetName()},
		request:  slices.Concat(headerChanges(r.GetRequestHeadersToAdd(), r.GetRequestHeadersToRemove()), request),
		response: slices.Concat(headerChanges(r.GetResponseHeadersToAdd(), r.GetResponseHeadersToRemove()), response),
	}
	matches, err := newMatch(r.GetMatch())
	if err != nil {
		return route{err: fmt.Errorf("route %.100q: %w", r.GetName(), err)}
	}
	act, err := b.action()
	if err != nil {
		err = fmt.Errorf("route %.100q: %w", r.GetName(), err)
		act = func(_ *call, d *Decision) {
			d.answer(Unsupported, http.StatusInternalServerError)
			d.Detail = err.Error()
		}
	}
	return route{matches: matches, rule: b.rule, act: act}
}

// routeBuilder compiles the action of a route.
type routeBuilder struct {
	message           *routev3.Route
	rule              *Rule
	request, response []HeaderChange
}

func (b *routeBuilder) action() (func(*call, *Decision), error) {
	switch a := b.message.GetAction().(type) {
	case *routev3.Route_Redirect:
		return b.redirect(a.Redirect)
	case *routev3.Route_DirectResponse:
		status, body := int(a.DirectResponse.GetStatus()), a.DirectResponse.GetBody()
		bytes := body.GetInlineBytes()
		if s := body.GetInlineString(); s != "" {
			bytes = []byte(s)
		}
		return func(_ *call, d *Decision) {
			d.answer(None, status)
			d.Body, d.Response = bytes, b.response
		}, nil
	case *routev3.Route_Route:
		return b.forward(a.Route)
	case *routev3.Route_NonForwardingAction:
		return func(*call, *Decision) {}, nil // the server itself serves the request
	default:
		return nil, fmt.Errorf("an action of the kind %T", a)
	}
}

// redirect compiles a redirect.
func (b *routeBuilder) redirect(a *routev3.RedirectAction) (func(*call, *Decision), error) {
	status, ok := map[routev3.RedirectAction_RedirectResponseCode]int{
		routev3.RedirectAction_MOVED_PERMANENTLY: http.StatusMovedPermanently, routev3.RedirectAction_FOUND: http.StatusFound,
		routev3.RedirectAction_SEE_OTHER: http.StatusSeeOther, routev3.RedirectAction_TEMPORARY_REDIRECT: http.StatusTemporaryRedirect,
		routev3.RedirectAction_PERMANENT_REDIRECT: http.StatusPermanentRedirect,
	}[a.GetResponseCode()]
	if !ok || a.GetHttpsRedirect() || a.GetStripQuery() {
		return nil, fmt.Errorf("a redirect %v", a)
	}
	path, err := b.newPath(a.GetPrefixRewrite(), a.GetRegexRewrite())
	if err != nil {
		return nil, err
	}
	if to := a.GetPathRedirect(); to != "" {
		path = func(c *call) string {
			if strings.Contains(to, "?") {
				return to
			}
			return to + c.Path[len(c.bare):]
		}
	}
	return func(c *call, d *Decision) {
		scheme := c.Scheme
		if s := a.GetSchemeRedirect(); s != "" {
			scheme = s
		}
		host := a.GetHostRedirect()
		if host == "" {
			host = keptAuthority(c, scheme, a.GetPortRedirect() != 0)
		}
		if p := a.GetPortRedirect(); p != 0 {
			host += ":" + strconv.Itoa(int(p))
		}
		d.answer(None, status)
		d.Location, d.Response = scheme+"://"+host+path(c), b.response
	}, nil
}

// keptAuthority returns the authority that a redirect keeps: with its port, unless there is a new
// one, or the scheme becomes another and the old one implied the port.
func keptAuthority(c *call, scheme string, newPort bool) string {
	host, port := splitPort(c.Authority)
	implied := c.Scheme == "http" && port == ":80" || c.Scheme == "https" && port == ":443"
	if newPort || scheme != c.Scheme && implied {
		return host
	}
	return c.Authority
}

// newPath compiles a rewrite of the path, which keeps the query.
func (b *routeBuilder) newPath(prefix string, regex *matcher.RegexMatchAndSubstitute) (func(*call) string, error) {
	switch {
	case regex != nil:
		re, err := regexp.Compile(regex.GetPattern().GetRegex())
		if err != nil {
			return nil, err
		}
		with := substitution(regex.GetSubstitution())
		return func(c *call) string { return re.ReplaceAllString(c.bare, with) + c.Path[len(c.bare):] }, nil
	case prefix != "":
		replaced := b.replaced()
		return func(c *call) string { return prefix + c.Path[min(replaced, len(c.bare)):] }, nil
	default:
		return func(c *call) string { return c.Path }, nil
	}
}

// replaced returns the length of the part of a path that a prefix rewrite replaces: the prefix of
// the match, or the whole path.
func (b *routeBuilder) replaced() int {
	switch p := b.message.GetMatch().GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return len(p.Prefix)
	case *routev3.RouteMatch_PathSeparatedPrefix:
		return len(p.PathSeparatedPrefix)
	default:
		const whole = 1 << 30
		return whole
	}
}

// substitution returns the replacement in the syntax of package regexp. RE2 writes groups as \1.
func substitution(with string) string {
	var out strings.Builder
	for i := 0; i < len(with); i++ {
		switch c := with[i]; {
		case c == '$':
			out.WriteString("$$")
		case c == '\\' && i+1 < len(with) && '0' <= with[i+1] && with[i+1] <= '9':
			i++
			out.WriteString("${" + with[i:i+1] + "}")
		case c == '\\' && i+1 < len(with) && with[i+1] == '\\':
			i++
			out.WriteByte('\\')
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
