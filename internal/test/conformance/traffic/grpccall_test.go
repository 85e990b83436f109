// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// grpcCall is a call of a gRPC client: a path and headers. Its method is POST, and it
// has no query.
type grpcCall struct {
	path    string
	headers map[string]string
}

func (c grpcCall) String() string { return fmt.Sprint(c.path, " ", c.headers) }

// samples returns calls that routes may distinguish: for each route one that it matches, as far as
// the match determines it, and calls that differ from it in one attribute.
func samples(list []tree) []grpcCall {
	paths := []string{"/", "/none.of/these"}
	values := make(map[string][]string)
	var matching []grpcCall
	for _, r := range list {
		match := object(r, "match")
		call := grpcCall{path: "/", headers: make(map[string]string)}
		for _, p := range []string{text(match, "path"), text(match, "prefix"), regexSample(text(object(match, "safeRegex"), "regex"))} {
			if p != "" {
				call.path = p
				paths = append(paths, p, p+"x", strings.ToUpper(p))
			}
		}
		for _, h := range objects(match, "headers") {
			name := strings.ToLower(text(h, "name"))
			v := headerSample(h)
			values[name] = append(values[name], v, v+"x", "")
			if h["invertMatch"] != true {
				call.headers[name] = v
			}
		}
		matching = append(matching, call)
	}
	matching = append(matching, grpcCall{path: "/", headers: map[string]string{}})
	out := make(map[string]grpcCall)
	add := func(c grpcCall) { out[c.String()] = c }
	for _, call := range matching {
		add(call)
		for _, p := range paths {
			add(grpcCall{p, call.headers})
		}
		for name, list := range values {
			without := maps.Clone(call.headers)
			delete(without, name)
			add(grpcCall{call.path, without})
			for _, v := range list {
				with := maps.Clone(call.headers)
				with[name] = v
				add(grpcCall{call.path, with})
			}
		}
	}
	return slices.Collect(maps.Values(out))
}

// headerSample returns a value that a match of a header is about.
func headerSample(h tree) string {
	s := object(h, "stringMatch")
	for _, form := range []string{"exact", "prefix", "suffix", "contains"} {
		if v := text(s, form); v != "" {
			return v
		}
	}
	if v := regexSample(text(object(s, "safeRegex"), "regex")); v != "" {
		return v
	}
	return "some"
}

// regexSample returns a text that a simple regular expression matches.
func regexSample(regex string) string {
	for _, r := range []string{".*", ".+", "[a-z]+", "[0-9]+", "\\d+", "[^/]+", "(", ")", "^", "$", "?", "\\"} {
		replacement := ""
		switch r {
		case ".+", "[a-z]+", "[^/]+":
			replacement = "a"
		case "[0-9]+", "\\d+":
			replacement = "1"
		}
		regex = strings.ReplaceAll(regex, r, replacement)
	}
	regex, _, _ = strings.Cut(regex, "|")
	return regex
}

// matches reports whether a route match holds for the call.
func (c grpcCall) matches(match tree) bool {
	path, prefix, exact := c.path, text(match, "prefix"), text(match, "path")
	if match["caseSensitive"] == false {
		path, prefix, exact = strings.ToLower(path), strings.ToLower(prefix), strings.ToLower(exact)
	}
	regex := text(object(match, "safeRegex"), "regex")
	switch {
	case exact != "" && path != exact, !strings.HasPrefix(path, prefix), regex != "" && !fullMatch(regex, c.path):
		return false
	case len(objects(match, "queryParameters")) > 0:
		return false
	}
	for _, m := range objects(match, "dynamicMetadata") {
		if m["invert"] != true {
			return false
		}
	}
	return !slices.ContainsFunc(objects(match, "headers"), func(h tree) bool { return !c.hasHeader(h) })
}

func (c grpcCall) hasHeader(h tree) bool {
	value, has := c.headers[strings.ToLower(text(h, "name"))]
	if text(h, "name") == ":method" {
		value, has = "POST", true
	}
	inverted := h["invertMatch"] == true
	if present, is := h["presentMatch"].(bool); is {
		return has == present != inverted
	}
	if !has && h["treatMissingHeaderAsEmpty"] != true {
		return false
	}
	s := object(h, "stringMatch")
	holds := true
	for form, v := range s {
		v, _ := v.(string)
		switch form {
		case "exact":
			holds = value == v
		case "prefix":
			holds = strings.HasPrefix(value, v)
		case "suffix":
			holds = strings.HasSuffix(value, v)
		case "contains":
			holds = strings.Contains(value, v)
		case "safeRegex":
			holds = fullMatch(text(object(s, form), "regex"), value)
		}
	}
	return holds != inverted
}

func fullMatch(regex, value string) bool {
	re, err := regexp.Compile("^(?:" + regex + ")$")
	return err == nil && re.MatchString(value)
}
