// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// form is the format of a response.
type form string

const (
	asHTML form = "html"
	asJSON form = "json"
	asYAML form = "yaml" // only on the page of an object
)

// query is a request for a page.
type query struct {
	*http.Request
	values url.Values
	form   form
}

// formOf returns the format that a request asks for: the parameter format decides first, then the
// ending of the path, then the Accept header. Any other format is HTML.
func formOf(r *http.Request, isJSON bool) form {
	switch given := form(r.URL.Query().Get("format")); {
	case given == asJSON || given == asYAML || given == asHTML:
		return given
	case isJSON:
		return asJSON
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html") {
		return asJSON
	}
	return asHTML
}

// text returns a parameter without surrounding space.
func (q *query) text(name string) string { return strings.TrimSpace(q.values.Get(name)) }

// is reports whether a parameter is not empty.
func (q *query) is(name string) bool { return q.text(name) != "" }

// number returns a parameter between 0 and most. A missing parameter has the value otherwise.
func (q *query) number(name string, otherwise, most int) (int, error) {
	text := q.text(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, badRequest("%s: must be a number from 0 to %d", name, most)
	}
	return n, nil
}

// With exports with to templates.
func (q *query) With(pairs ...string) string { return q.with(pairs...) }

// with returns a link to the same page with some parameters replaced. Pairs are name, value, name,
// value.
func (q *query) with(pairs ...string) string {
	values := maps.Clone(q.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return "?" + values.Encode()
}

// link returns a link to a page with parameters; empty parameters are omitted. The link is
// relative, so it works wherever the handler is mounted.
func link(page string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if page == "" {
		page = "./"
	}
	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// contains reports whether any of the texts contains part, ignoring case. An empty part matches
// every text.
func contains(part string, texts ...string) bool {
	if part == "" {
		return true
	}
	part = strings.ToLower(part)
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), part) {
			return true
		}
	}
	return false
}
