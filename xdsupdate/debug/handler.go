// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/internal/options"
)

// handler serves the pages. It is immutable except for turn.
type handler struct {
	Options
	pages     []page
	byName    map[string]*page
	templates map[string]*template.Template
	style     []byte
	// turn is the token of heavy pages: only one request at a time holds it.
	turn chan struct{}
}

type page struct {
	// name is the path below the handler, "" for the first page.
	name string
	// title is the text of the link in the navigation, "" if the navigation has no link to the
	// page.
	title string
	// under is the page that the navigation highlights when it has no link to this one.
	under string
	// heavy reports whether the page may read the whole state. Requests for heavy pages run one at
	// a time.
	heavy bool
	// data returns the content of the page, which is also its JSON.
	data func(q *query) (any, error)
}

// New returns a handler of debug pages for the parts that the options have. It may be mounted below
// any path. The path has to be stripped except for its last slash:
//
//	mux.Handle("/debug/", http.StripPrefix("/debug", debug.New(options)))
//
// The handler starts no goroutine and keeps no state. New panics if there are two Options, and for
// sources that configstore.CheckSources rejects.
func New(opts ...Options) http.Handler {
	h := &handler{Options: options.One("debug.New", opts), turn: make(chan struct{}, 1)}
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	if err := configstore.CheckSources(h.Sources); err != nil {
		panic("debug.New: " + err.Error())
	}
	h.pages = h.makePages()
	h.byName = make(map[string]*page, len(h.pages))
	for i := range h.pages {
		h.byName[h.pages[i].name] = &h.pages[i]
	}
	h.templates, h.style = assetsOf(h.pages, func(name string) bool { return h.byName[name] != nil })
	return h
}

// statusError is an error with the HTTP status of the response.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func notFound(format string, args ...any) error {
	return &statusError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if err := h.admit(r); err != nil {
		if err.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		answerText(w, r, err.status, err.text)
		return
	}
	name, isJSON := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), ".json")
	switch {
	case r.URL.Path == "":
		redirectBelow(w, r)
		return
	case name == styleName:
		answer(w, r, http.StatusOK, "text/css; charset=utf-8", h.style)
		return
	case isJSON && name == "index":
		name = ""
	}
	q := &query{Request: r, values: r.URL.Query(), form: formOf(r, isJSON)}
	h.show(r.Context(), w, q, name)
}

// show responds with a page.
func (h *handler) show(ctx context.Context, w http.ResponseWriter, q *query, name string) {
	p := h.byName[name]
	if p == nil {
		h.answerError(w, q, &page{}, notFound("there is no page %q", name))
		return
	}
	var data any
	var err error
	if panicked := guard.Call(func() { data, err = h.dataOf(ctx, p, q) }); panicked != nil {
		panicked.Log(h.Logger, "debug page", slog.String("page", name))
		err = errors.New("a function that this page calls has panicked; the log has the stack")
	}
	if err != nil {
		h.answerError(w, q, p, err)
		return
	}
	h.answerPage(w, q, p, data)
}

// dataOf computes the content of a page. A heavy page first waits for its turn.
func (h *handler) dataOf(ctx context.Context, p *page, q *query) (any, error) {
	if p.heavy {
		if err := h.takeTurn(ctx); err != nil {
			return nil, err
		}
		defer func() { <-h.turn }()
	}
	return p.data(q)
}

// takeTurn waits until no other request computes a heavy page.
func (h *handler) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &statusError{http.StatusServiceUnavailable, "gave up waiting for other requests"}
	}
}

// maxQuery is the maximum length of a request's query, in bytes.
const maxQuery = 16 << 10

// admit returns an error if the request may not be answered.
func (h *handler) admit(r *http.Request) *statusError {
	if h.Authorize != nil {
		var err error
		if panicked := guard.Call(func() { err = h.Authorize(r) }); panicked != nil {
			panicked.Log(h.Logger, "debug authorize")
			err = errors.New("the check of who may see this has panicked")
		}
		if err != nil {
			return &statusError{http.StatusForbidden, err.Error()}
		}
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &statusError{http.StatusMethodNotAllowed, "only GET and HEAD are served: nothing can be changed here"}
	case len(r.URL.RawQuery) > maxQuery:
		return &statusError{http.StatusRequestURITooLong, "the query is too long"}
	}
	return nil
}

// protect sets the security headers of every response: only the style sheet may be loaded, the
// response is not cached, no other site may embed it, and links do not leak its address.
func protect(h http.Header) {
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Add("Vary", "Accept")
}

// redirectBelow redirects a request for the handler itself, without a trailing slash, to the first
// page. The redirect is relative, like the links of pages, because only the client knows the path
// below which the handler is mounted.
func redirectBelow(w http.ResponseWriter, r *http.Request) {
	asked, _, _ := strings.Cut(r.RequestURI, "?")
	base := path.Base(asked)
	if base == "." || base == "/" {
		base = ""
	}
	w.Header().Set("Location", "./"+base+"/")
	answerText(w, r, http.StatusTemporaryRedirect, "./"+base+"/")
}
