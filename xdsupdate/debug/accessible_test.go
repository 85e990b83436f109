// SPDX-License-Identifier: Apache-2.0

//go:build linux

package debug_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// TestKeyboard: an operator who looks for the reason of a rejected route gets from the first page
// to the reason with the keyboard alone.
func TestKeyboard(t *testing.T) {
	tier.OnlyFull(t, "a browser")
	t.Parallel()
	browser(t)
	p := newMesh(t)
	base := site(t, p.pages)
	b := openTab(t)

	b.visit(base)
	b.tabTo("link", "Skip to the content") // the first thing
	b.press("Enter")
	if id := b.value("document.activeElement.id"); id != "main" {
		t.Errorf("the link to the content leads to %q", id)
	}
	b.visit(base)
	b.tabTo("link", "Explain a call")
	b.loading("the form", func() { b.press("Enter") })
	b.tabTo("textbox", "Host")
	b.write("cart.example.com")
	b.tabTo("textbox", "Path")
	b.press("End")
	b.write("new/things")
	b.tabTo("textbox", "or a client in the namespace")
	b.write("shop")
	b.tabTo("button", "Explain")
	b.loading("the answer", func() { b.press("Enter") })
	text := fmt.Sprint(b.value("document.querySelector('main').innerText"))
	demand(t, "the answer", text, "sent on, but it fails: no DestinationRule that counts for the client has a subset \"v2\"")
	b.tabTo("link", "VirtualService shop/cart") // which decides
	b.loading("the object", func() { b.press("Enter") })
	demand(t, "the object", fmt.Sprint(b.value("document.querySelector('h1').innerText")), "VirtualService shop/cart")
}

// everyPage are pages of newMesh, of each sort.
var everyPage = []string{
	"", "explain?host=cart.example.com&namespace=shop&path=/new", "explain?host=beta.example.com&proxy=sidecar~10.0.0.8~old.shop~shop.svc",
	"policies", "proxies", "proxy?id=sidecar~10.0.0.8~old.shop~shop.svc", "resource?id=sidecar~10.0.0.9~web.shop~shop.svc&type=RouteConfiguration&name=80",
	"configs", "config?kind=VirtualService&namespace=shop&name=beta", "services", "service?host=cart.example.com&namespace=shop&explain=1",
	"workload?namespace=shop&name=cart-2", "conflicts", "sources", "queue", "verify?run=1", "nothing",
}

// TestAccessible looks at every page as people do who do not see it, or not well.
func TestAccessible(t *testing.T) {
	tier.OnlyFull(t, "a browser")
	t.Parallel()
	browser(t)
	p := newMesh(t)
	base := site(t, p.pages)
	b := openTab(t)
	testScreenReader(t, b, base)
	testContrast(t, b, base)
	testNarrow(t, b, base)
}

// testScreenReader: the accessibility tree of each page has one main part with one first heading,
// headings without gaps, and names for all controls and tables; all focusable elements can be
// distinguished.
func testScreenReader(t *testing.T, b *tab, base string) {
	t.Helper()
	titles := map[string]string{}
	for _, page := range everyPage {
		b.visit(base + page)
		checkTree(t, page, b.tree())
		title := fmt.Sprint(b.value("document.title"))
		if other, twice := titles[title]; twice && strings.SplitN(other, "?", 2)[0] != strings.SplitN(page, "?", 2)[0] {
			t.Errorf("%q and %q have the title %q", page, other, title)
		}
		titles[title] = page
		if lang := b.value("document.documentElement.lang"); lang != "en" {
			t.Errorf("%q is in the language %q", page, lang)
		}
	}
}

func checkTree(t *testing.T, page string, nodes []axNode) {
	t.Helper()
	count := map[string]int{}
	level := 0
	for _, n := range nodes {
		role := n.role()
		count[role]++
		switch role {
		case "heading":
			now, _ := n.property("level").(float64)
			if int(now) > level+1 {
				t.Errorf("%q: heading %q of level %v comes after one of level %d", page, n.name(), now, level)
			}
			if level = int(now); level == 1 {
				count["first heading"]++
			}
			fallthrough
		case "link", "button", "textbox", "searchbox", "combobox", "checkbox", "table", "region", "navigation", "columnheader":
			if strings.TrimSpace(n.name()) == "" {
				t.Errorf("%q: a %s has no name", page, role)
			}
		}
	}
	for _, role := range []string{"main", "first heading", "banner", "contentinfo"} {
		if count[role] != 1 {
			t.Errorf("%q has %d times %s", page, count[role], role)
		}
	}
	if count["table"] > 0 && (count["columnheader"] == 0 || count["rowheader"] == 0) {
		t.Errorf("%q has tables without headers of columns or rows", page)
	}
}

// beyondTheEdge returns the first element that a page has to be scrolled sideways for, "" if there is none.
const beyondTheEdge = `(() => {
  const edge = document.scrollingElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= edge) return "";
  const all = [...document.querySelectorAll("main *, header *, footer *")].filter(e => !e.closest(".scroll") && !e.closest("pre *"));
  return all.filter(e => e.getBoundingClientRect().right > edge || e.scrollWidth > edge).map(e => e.outerHTML.slice(0, 300)).pop() ?? "something";
})()`

// testNarrow: on a narrow screen, or with large letters, no page has to be scrolled sideways;
// tables are, by themselves.
func testNarrow(t *testing.T, b *tab, base string) {
	t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 320, "height": 640, "deviceScaleFactor": 1, "mobile": false}, nil)
	for _, page := range everyPage {
		b.visit(base + page)
		if beyond := b.value(beyondTheEdge); beyond != "" {
			t.Errorf("%q is wider than a screen of 320: %v", page, beyond)
		}
	}
}

// contrasts returns the minimum contrast between a text of a page and its background (WCAG 2.2,
// 1.4.3).
const contrasts = `(() => {
  const parse = c => c.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = parse(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if ((parse(c)[3] ?? 1) === 1) return c; } return "rgb(255, 255, 255)"; };
  let least = 99, of = "";
  for (const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walk.nextNode();) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || e.closest("option")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x), c = (a + 0.05) / (b + 0.05);
    if (c < least) { least = c; of = e.outerHTML.slice(0, 200); }
  }
  return [least, of];
})()`

// testContrast: all texts can be read, light and dark.
func testContrast(t *testing.T, b *tab, base string) {
	t.Helper()
	grounds := map[any]bool{}
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		for _, page := range everyPage {
			b.visit(base + page)
			grounds[b.value("getComputedStyle(document.documentElement).backgroundColor")] = true
			found, _ := b.value(contrasts).([]any)
			if least, ok := found[0].(float64); !ok || least < 4.5 {
				t.Errorf("%s: %q has a text with a contrast of %v: %v", scheme, page, found[0], found[1])
			}
		}
	}
	if len(grounds) != 2 {
		t.Errorf("light and dark have the grounds %v", grounds)
	}
}
