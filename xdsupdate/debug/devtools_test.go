// SPDX-License-Identifier: Apache-2.0

//go:build linux

package debug_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// tab is a tab of a browser that a test drives by the Chrome DevTools Protocol, over pipes:
// https://chromedevtools.github.io/devtools-protocol. It is for one goroutine.
type tab struct {
	t       *testing.T
	in      *os.File
	answers chan devtoolsMessage
	session string
	last    int
	// loads is how many pages have been loaded.
	loads int
}

// devtoolsMessage is an answer, which has an ID, or an event, which has a method.
type devtoolsMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// openTab starts a browser, which ends with the test.
func openTab(t *testing.T) *tab {
	t.Helper()
	toBrowser, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	//nolint:gosec // the program is a browser of this machine
	cmd := exec.CommandContext(t.Context(), browser(t), append(browserFlags(home), "--remote-debugging-pipe")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser} // 3 and 4, as the option has it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = toBrowser.Close()
	_ = fromBrowser.Close()
	b := &tab{t: t, in: in, answers: make(chan devtoolsMessage, 10_000)}
	go func() {
		defer close(b.answers)
		for reader := bufio.NewReader(out); ; {
			line, err := reader.ReadBytes(0)
			if err != nil {
				return // it has ended
			}
			var m devtoolsMessage
			if json.Unmarshal(line[:len(line)-1], &m) == nil {
				b.answers <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = in.Close()
		for range b.answers { // until the reader has ended
		}
		_ = out.Close()
	})
	b.attach()
	return b
}

// browserFlags are the flags of a browser that does nothing on its own.
func browserFlags(home string) []string {
	return []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server",
		"--user-data-dir=" + filepath.Join(home, "profile"),
	}
}

// attach makes a tab.
func (b *tab) attach() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	b.call("Page.enable", nil, nil)
	b.call("Accessibility.enable", nil, nil)
}

// call calls a method of the protocol, and decodes its result.
func (b *tab) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.last++
	request := map[string]any{"id": b.last, "method": method}
	if params != nil {
		request["params"] = params
	}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatal(err)
	}
	m := b.until(method, func(m devtoolsMessage) bool { return m.ID == b.last })
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

// until returns the first message that is waited for.
func (b *tab) until(what string, is func(devtoolsMessage) bool) devtoolsMessage {
	b.t.Helper()
	timeout := time.NewTimer(testTimeout)
	defer timeout.Stop()
	for {
		select {
		case m, ok := <-b.answers:
			if !ok {
				b.t.Fatalf("%s: the browser has ended", what)
			}
			if m.Method == "Page.loadEventFired" {
				b.loads++
			}
			if is(m) {
				return m
			}
		case <-timeout.C:
			b.t.Fatalf("%s: the browser does not answer", what)
		}
	}
}

// loading calls do, which makes the tab load a page, and returns when the page is loaded.
func (b *tab) loading(what string, do func()) {
	b.t.Helper()
	before := b.loads
	if do(); b.loads == before {
		b.until(what, func(devtoolsMessage) bool { return b.loads > before })
	}
}

// visit goes to a page.
func (b *tab) visit(url string) {
	b.t.Helper()
	b.loading(url, func() { b.call("Page.navigate", map[string]any{"url": url}, nil) })
}

// value evaluates a JavaScript expression in the developer tools, outside of the page.
func (b *tab) value(expression string) any {
	b.t.Helper()
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &out)
	if out.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, out.ExceptionDetails)
	}
	return out.Result.Value
}

// press presses a key, as a person does.
func (b *tab) press(key string) {
	b.t.Helper()
	known := map[string]struct {
		code int
		text string
	}{"Tab": {code: 9}, "Enter": {13, "\r"}, "End": {code: 35}}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": known[key].code}
	if known[key].text != "" {
		down["text"] = known[key].text
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": known[key].code}, nil)
}

// write types a text into the focused element.
func (b *tab) write(text string) {
	b.t.Helper()
	b.call("Input.insertText", map[string]any{"text": text}, nil)
}

// tabTo presses the tabulator until something has the focus that a screen reader announces as this role and name.
func (b *tab) tabTo(role, name string) {
	b.t.Helper()
	const most = 200
	var seen []string
	for range most {
		b.press("Tab")
		focused := b.focused()
		if focused.role() == role && focused.name() == name {
			if shown := b.value(`(s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))`); shown != true {
				b.t.Errorf("nothing shows that %s %q has the focus", role, name)
			}
			return
		}
		seen = append(seen, fmt.Sprintf("%s %q", focused.role(), focused.name()))
	}
	b.t.Fatalf("the tabulator does not lead to %s %q, but to %s", role, name, seen)
}

// axNode is a node of the tree that a screen reader gets.
type axNode struct {
	NodeID, ParentID string
	Ignored          bool
	Role, Name       struct{ Value any }
	Properties       []struct {
		Name  string
		Value struct{ Value any }
	}
}

func (n axNode) role() string { return fmt.Sprint(n.Role.Value) }

func (n axNode) name() string {
	if n.Name.Value == nil {
		return ""
	}
	return fmt.Sprint(n.Name.Value)
}

func (n axNode) property(name string) any {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Value.Value
		}
	}
	return nil
}

// tree returns the nodes that are not ignored, in the order of the page.
func (b *tab) tree() (out []axNode) {
	b.t.Helper()
	var all struct{ Nodes []axNode }
	b.call("Accessibility.getFullAXTree", nil, &all)
	for _, n := range all.Nodes {
		if !n.Ignored {
			out = append(out, n)
		}
	}
	return out
}

// focused returns the focused element.
func (b *tab) focused() axNode {
	b.t.Helper()
	var object struct {
		Result struct{ ObjectID string }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": "document.activeElement"}, &object)
	var part struct{ Nodes []axNode }
	b.call("Accessibility.getPartialAXTree", map[string]any{"objectId": object.Result.ObjectID, "fetchRelatives": false}, &part)
	if len(part.Nodes) == 0 {
		b.t.Fatal("nothing has the focus")
	}
	return part.Nodes[0]
}
