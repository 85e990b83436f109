// SPDX-License-Identifier: Apache-2.0

//go:build linux

package debug_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// requireClients makes a browser that is missing a failure instead of a reason to skip.
const requireClients = "PILOTKIT_REQUIRE_CLIENTS"

// browser returns a Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	tier.NotShort(t, "a browser")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no chromium: apt-get install chromium"
	if os.Getenv(requireClients) != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// visit opens a page in a browser, and returns the resulting elements and the messages of the
// console.
func visit(t *testing.T, target string, flags ...string) (elements, console string) {
	t.Helper()
	program, home := browser(t), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	all := append(browserFlags(home), "--enable-logging=stderr", "--dump-dom")
	cmd := exec.CommandContext(ctx, program, append(append(all, flags...), target)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	// It starts processes of its own, which end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // remaining processes of the browser
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, &log)
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			console += line
		}
	}
	return out.String(), console
}

// site serves pages below a prefix, as a program does.
func site(t *testing.T, pages http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/control/plane/", http.StripPrefix("/control/plane", pages))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/control/plane/"
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// read returns the text of a page as a person reads it.
func read(elements string) string {
	_, main, _ := strings.Cut(elements, "<main")
	return spaces.ReplaceAllString(strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&nbsp;", " ").Replace(tags.ReplaceAllString("<main"+main, " ")), " ")
}

// TestStuckRoutes: the three classic cases of a route that does not work. A browser shows the reason on the page that
// the form, or the overview, leads to.
func TestStuckRoutes(t *testing.T) {
	tier.OnlyFull(t, "a browser")
	t.Parallel()
	browser(t)
	p := newMesh(t)
	base := site(t, p.pages)
	form := func(pairs ...string) string {
		values := url.Values{"port": {"80"}, "method": {"GET"}, "client": {"envoy"}, "headers": {""}, "proxy": {""}, "namespace": {"shop"}}
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		return base + "explain?" + values.Encode()
	}
	for name, test := range map[string]struct {
		target string
		want   []string
	}{
		"subset without DestinationRule": {
			form("host", "cart.example.com", "path", "/new/things"),
			[]string{"VirtualService shop/cart", `http[0] "canary"`, `missing no DestinationRule that counts for the client has a subset "v2"`},
		},
		"service not visible": {
			form("host", "ledger.example.com", "path", "/"),
			[]string{"none that the client sees", `Service bank/ledger.example.com exists, but the namespace "shop" does not see it: it is exported to [.].`},
		},
		"object that one Envoy refused": {
			base,
			[]string{
				"Resources that a proxy refuses: 1", "sidecar~10.0.0.8~old.shop~shop.svc: RouteConfiguration 80: route 80: <b>beta</b> is not welcome",
				"(left out: VirtualService shop/beta)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // each starts a browser
			elements, console := visit(t, test.target)
			text := read(elements)
			demand(t, test.target, text, test.want...)
			if console != "" {
				t.Errorf("the console says:\n%s", console)
			}
		})
	}
}

// TestBrowserIsSafe: no text of a user becomes an element in a browser, and no page violates its
// own Content-Security-Policy. The console would report a violation; a page that violates it proves
// that.
func TestBrowserIsSafe(t *testing.T) {
	t.Parallel()
	browser(t)
	elements, console := visit(t, site(t, debug.New(evilOptions()))+"sources?q="+url.QueryEscape("x-evil"))
	if strings.Contains(elements, "<x-evil") || strings.Contains(elements, "onmouseover=\"c") || !strings.Contains(elements, "&lt;x-evil") {
		t.Errorf("what somebody wrote is an element:\n%s", elements)
	}
	if console != "" {
		t.Errorf("the console says:\n%s", console)
	}
	pages := debug.New(debug.Options{})
	broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(w, r)
		_, _ = w.Write([]byte(`<script>document.title = "ran"</script>`))
	})
	elements, console = visit(t, site(t, unlimited{broken}))
	if strings.Contains(elements, "<title>ran</title>") || !strings.Contains(console, "Content Security Policy") {
		t.Errorf("a script ran, or the console does not say that it did not: %s", console)
	}
}

// unlimited is a handler whose responses may be longer than their Content-Length.
type unlimited struct{ http.Handler }

func (u unlimited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.Handler.ServeHTTP(withoutLength{w}, r)
}

type withoutLength struct{ http.ResponseWriter }

func (w withoutLength) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}

// TestScreenshots writes pictures of pages for people to look at, dark and light, wide and narrow,
// if the environment variable names a directory.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("PILOTKIT_SCREENSHOTS")
	if dir == "" {
		t.Skip("PILOTKIT_SCREENSHOTS names no directory for pictures")
	}
	p := newMesh(t)
	p.connect("sidecar~10.0.0.7~new.shop~shop.svc", "shop", func(r xdstest.Response) error {
		if r.TypeURL == envoy.RouteType && bytes.Contains(r.Resources[0].Any.GetValue(), []byte("x-unwelcome")) {
			return errors.New("route_config: x-unwelcome is not allowed")
		}
		return nil
	}, "80")
	base := site(t, p.pages)
	for name, target := range map[string]string{
		"overview": "", "explain": "explain?host=cart.example.com&namespace=shop&path=/new", "proxies": "proxies", "configs": "configs",
		"proxy": "proxy?id=sidecar~10.0.0.8~old.shop~shop.svc", "config": "config?kind=VirtualService&namespace=shop&name=beta",
		"service": "service?host=cart.example.com&namespace=shop&explain=1", "queue": "queue", "services": "services",
	} {
		for look, flags := range map[string][]string{
			"light-1280": {"--window-size=1280,1000"}, "dark-400": {"--window-size=400,1400", "--force-dark-mode", "--blink-settings=preferredColorScheme=0"},
		} {
			visit(t, base+target, append(flags, "--hide-scrollbars", "--screenshot="+filepath.Join(dir, name+"-"+look+".png"))...)
		}
	}
}
