// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pilotkit/pilotkit/internal/excerpt"
	"github.com/pilotkit/pilotkit/internal/guard"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

//go:embed assets
var assets embed.FS

const styleName = "style.css"

// assetsOf returns the templates by page name, and the style sheet.
func assetsOf(pages []page, has func(name string) bool) (map[string]*template.Template, []byte) {
	layout := template.Must(template.New("layout.html").Funcs(functions(has)).ParseFS(assets, "assets/layout.html"))
	out := map[string]*template.Template{}
	for _, p := range pages {
		out[p.name] = template.Must(template.Must(layout.Clone()).ParseFS(assets, "assets/"+fileOf(p.name)+".html"))
	}
	out[errorPage] = template.Must(template.Must(layout.Clone()).ParseFS(assets, "assets/error.html"))
	style, err := assets.ReadFile("assets/" + styleName)
	if err != nil {
		panic(err) // the style sheet is embedded
	}
	return out, style
}

// errorPage is the name of the template of errors.
const errorPage = "\x00error"

func fileOf(name string) string {
	if name == "" {
		return "overview"
	}
	return name
}

// functions returns the functions of templates. The function has reports whether a page exists.
func functions(has func(name string) bool) template.FuncMap {
	return template.FuncMap{
		"link": link,
		"has":  has,
		"named": func(kind, name string) object {
			namespace, name, _ := strings.Cut(name, "/")
			return object{Kind: kind, Namespace: namespace, Name: name}
		},
		"cut":  func(text string) string { return excerpt.CutTo(text, maxText) },
		"time": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"ago":  func(t time.Time) string { return age(time.Since(t)) },
		"type": typeName,
		"text": func(n uint64) string { return strconv.FormatUint(n, 10) },
		"statuses": func() []ads.ResourceStatus {
			return []ads.ResourceStatus{ads.StatusSynced, ads.StatusNotSent, ads.StatusStale, ads.StatusError}
		},
		"took": func(d time.Duration) string { return d.Round(time.Microsecond).String() },
	}
}

// maxText is the maximum number of bytes of a text in a row of a table. JSON is not truncated.
const maxText = 2 << 10

// typeName returns the last part of a type URL.
func typeName(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "/.")+1:] }

// age formats a duration for people.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "in " + (-d).Round(time.Millisecond).String()
	case d < time.Second:
		return "now"
	case d < time.Hour:
		return d.Round(time.Second).String() + " ago"
	case d < day:
		return d.Round(time.Minute).String() + " ago"
	default:
		return strconv.Itoa(int(d/day)) + " days ago"
	}
}

// view is the data of a template.
type view struct {
	Pages   []navLink
	Title   string
	Data    any
	Query   *query
	JSON    string // a link to the page as JSON, "" if there is none
	Written time.Time
}

// navLink is a link of the navigation.
type navLink struct {
	Title, To string
	Here      bool
}

// Param returns a parameter of the request.
func (v view) Param(name string) string { return v.Query.values.Get(name) }

// answerPage responds with a page in the requested format.
func (h *handler) answerPage(w http.ResponseWriter, q *query, p *page, data any) {
	status := http.StatusOK
	if s, ok := data.(interface{ status() int }); ok {
		status = s.status()
	}
	if raw, ok := data.(rawer); ok {
		if contentType, body := raw.raw(q.form); body != nil {
			answer(w, q.Request, status, contentType, body)
			return
		}
	}
	if q.form == asJSON {
		answerJSON(w, q.Request, status, data)
		return
	}
	h.answerHTML(w, q, status, p, p.name, data)
}

// rawer is page content with formats of its own in addition to HTML. A nil body means that it does
// not have the format.
type rawer interface {
	raw(form) (contentType string, body []byte)
}

// answerError responds with an error in the requested format.
func (h *handler) answerError(w http.ResponseWriter, q *query, p *page, err error) {
	status := http.StatusInternalServerError
	if s := (*statusError)(nil); errors.As(err, &s) {
		status = s.status
	}
	data := struct {
		Error string `json:"error"`
	}{excerpt.CutTo(redactText(err.Error()), maxText)}
	if q.form == asJSON {
		answerJSON(w, q.Request, status, data)
		return
	}
	h.answerHTML(w, q, status, p, errorPage, data)
}

func (h *handler) answerHTML(w http.ResponseWriter, q *query, status int, p *page, name string, data any) {
	v := view{Title: p.title, Data: data, Query: q, Written: time.Now(), JSON: q.with("format", string(asJSON))}
	for _, other := range h.pages {
		if other.title != "" {
			here := other.name == p.name || p.under != "" && other.name == p.under
			v.Pages = append(v.Pages, navLink{other.title, link(other.name), here && name != errorPage})
		}
	}
	var out bytes.Buffer
	var err error
	panicked := guard.Call(func() { err = h.templates[name].Execute(&out, v) })
	if panicked != nil {
		err = panicked
	}
	if err != nil {
		h.Logger.Error("debug page", slog.String("page", p.name), slog.Any("error", err))
		answerText(w, q.Request, http.StatusInternalServerError, "the page cannot be written; the log has the reason")
		return
	}
	answer(w, q.Request, status, "text/html; charset=utf-8", out.Bytes())
}

func answerJSON(w http.ResponseWriter, r *http.Request, status int, data any) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", " ")
	if err := e.Encode(data); err != nil {
		answerText(w, r, http.StatusInternalServerError, "cannot be shown as JSON: "+err.Error())
		return
	}
	answer(w, r, status, "application/json; charset=utf-8", out.Bytes())
}

func answerText(w http.ResponseWriter, r *http.Request, status int, text string) {
	answer(w, r, status, "text/plain; charset=utf-8", []byte(text+"\n"))
}

// answer writes a response, without its body for HEAD.
func answer(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone
	}
}
