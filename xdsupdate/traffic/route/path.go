// SPDX-License-Identifier: Apache-2.0

package route

import (
	"fmt"
	"strings"
	"unicode/utf8"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// Notes on requests whose path depends on attributes that a Request lacks.
const (
	unknownHTTP  = "the version of HTTP, by which a path that is not ASCII is escaped or refused"
	unknownEnvoy = "the version of Envoy, by which dots with parameters (..;x) are resolved, or are a name"
)

// paths is the path normalization of a connection manager.
type paths struct {
	// checked is not set for gRPC servers, which have no such settings and take every path.
	checked                    bool
	normalize, merge, unescape bool
}

func newPaths(m *hcm.HttpConnectionManager) paths {
	return paths{
		m.GetNormalizePath() != nil, m.GetNormalizePath().GetValue(), m.GetMergeSlashes(),
		m.GetPathWithEscapedSlashesAction() == hcm.HttpConnectionManager_UNESCAPE_AND_FORWARD,
	}
}

// of returns the path that filters and routes see for a request target, as the newest supported
// Envoy normalizes it, and notes on the versions that it depends on. False means that Envoy answers with 400.
// The query is unchanged.
func (p paths) of(target string) (path string, notes []string, ok bool) {
	if !p.checked || isPlain(target) {
		return target, nil, true
	}
	if strings.ContainsFunc(target, func(r rune) bool { return r >= utf8.RuneSelf }) {
		notes = append(notes, unknownHTTP)
	}
	path, ok = p.read(target, true)
	if older, too := p.read(target, false); older != path || too != ok {
		notes = append(notes, unknownEnvoy)
	}
	return path, notes, ok
}

// isPlain reports whether no normalization changes a target.
func isPlain(target string) bool {
	if target == "" || target[0] != '/' {
		return false
	}
	for i := range len(target) {
		switch c := target[i]; {
		case c == '?':
			return !strings.ContainsFunc(target[i:], func(r rune) bool { return unsent(r) || r >= utf8.RuneSelf })
		case c == '/' && i+1 < len(target) && (target[i+1] == '/' || target[i+1] == '.'):
			return false
		case c == '/' || unreserved(c) || strings.IndexByte("!$&'()*+,;:@=", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// read is of for one reading: with parameters, path segments of dots may have parameters, as in
// newer releases of Envoy.
func (p paths) read(target string, parameters bool) (string, bool) {
	if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, unsent) {
		return "", false
	}
	path, query, ok := strings.Cut(target, "?")
	if ok {
		query = "?" + query
	}
	if p.unescape {
		path = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`).Replace(path)
	}
	if p.normalize {
		if path, ok = canonicalPath(path, parameters); !ok {
			return "", false
		}
	}
	if p.merge {
		path = withoutEmptySegments(path)
	}
	return path + query, true
}

// withoutEmptySegments merges slashes. A path that consists only of slashes becomes two slashes.
func withoutEmptySegments(path string) string {
	if !strings.Contains(path, "//") {
		return path
	}
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	end := ""
	if strings.HasSuffix(path, "/") {
		end = "/"
	}
	return "/" + strings.Join(segments, "/") + end
}

// unsent reports whether a request target cannot contain a character unescaped. HTTP/2 accepts
// non-ASCII characters.
func unsent(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }

// canonicalPath resolves dot segments and normalizes escapes. False means that the path contains an
// escaped NUL.
func canonicalPath(path string, parameters bool) (string, bool) {
	if parameters {
		path = withoutDotParameters(path)
	}
	var out []string
	segments := strings.Split(strings.ReplaceAll(path, `\`, "/"), "/")[1:]
	for i, s := range segments {
		name, ok := respelled(s)
		if !ok {
			return "", false
		}
		switch name {
		case "..":
			out = out[:max(0, len(out)-1)]
		case ".":
		default:
			out = append(out, name)
			continue
		}
		if i == len(segments)-1 {
			out = append(out, "") // the result denotes a directory
		}
	}
	return "/" + strings.Join(out, "/"), true
}

// withoutDotParameters removes the parameters of dot segments. It ignores escaped dots.
func withoutDotParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if dots, _, ok := strings.Cut(s, ";"); ok && (dots == "." || dots == "..") {
			segments[i] = dots
		}
	}
	return strings.Join(segments, "/")
}

// respelled unescapes unreserved characters, and escapes characters that need an escape. Other
// escapes stay as they are. A percent sign without an escape stays unless it would now begin one.
// False means an escaped NUL.
func respelled(path string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if n, ok := escaped(path[i:]); ok {
			switch {
			case n == 0:
				return "", false
			case unreserved(n):
				out.WriteByte(n)
			default:
				out.WriteString(path[i : i+3])
			}
			i += 2
			continue
		}
		switch {
		case c == '%':
			out.WriteByte(lonePercent)
		case c >= utf8.RuneSelf || strings.IndexByte("\"<>^`{|}", c) >= 0:
			fmt.Fprintf(&out, "%%%02X", c)
		default:
			out.WriteByte(c)
		}
	}
	return withLonePercents(out.String()), true
}

// lonePercent stands for a percent sign that does not begin an escape. It occurs in no path.
const lonePercent = 0

func withLonePercents(path string) string {
	parts := strings.Split(path, string(rune(lonePercent)))
	for i, part := range parts[1:] {
		if _, ok := escaped("%" + part); ok {
			part = "25" + part
		}
		parts[1+i] = "%" + part
	}
	return strings.Join(parts, "")
}

// escaped returns the character of the escape, such as "%2F", at the beginning of a text.
func escaped(text string) (byte, bool) {
	if len(text) < 3 || text[0] != '%' {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, text[1]|0x20), strings.IndexByte(hexDigits, text[2]|0x20)
	if high < 0 || low < 0 {
		return 0, false
	}
	return byte(high<<4 | low), true
}

const hexDigits = "0123456789abcdef"

func unreserved(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("-._~", c) >= 0
}
