// SPDX-License-Identifier: Apache-2.0

package routesim

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	meshconfig "istio.io/api/mesh/v1alpha1"
)

// Paths describes the normalization of request paths, which precedes all matching, as Envoy
// documents it for its HTTP connection manager, and Istio for pathNormalization. The zero value
// changes no path, and accepts every path.
type Paths struct {
	// Checked: paths that no request can have are refused.
	Checked bool
	// Normalized: RFC 3986, and backslashes are slashes; Merged: several slashes are one;
	// Unescaped: so are escaped ones.
	Normalized, Merged, Unescaped bool
	// Parameters: dots may have some, as newer releases of Envoy read them (/..;x/).
	Parameters bool
}

// PathsOf returns the normalization of a mesh.
func PathsOf(n meshconfig.MeshConfig_ProxyPathNormalization_NormalizationType) Paths {
	decode := n == meshconfig.MeshConfig_ProxyPathNormalization_DECODE_AND_MERGE_SLASHES
	return Paths{
		Checked: true, Normalized: n != meshconfig.MeshConfig_ProxyPathNormalization_NONE,
		Merged: decode || n == meshconfig.MeshConfig_ProxyPathNormalization_MERGE_SLASHES, Unescaped: decode, Parameters: true,
	}
}

// pathsOf returns the normalization of a connection manager. A gRPC server's does not normalize,
// and has no setting for it.
func pathsOf(m *hcm.HttpConnectionManager) Paths {
	return Paths{m.GetNormalizePath() != nil, m.GetNormalizePath().GetValue(), m.GetMergeSlashes(), m.GetPathWithEscapedSlashesAction() == hcm.HttpConnectionManager_UNESCAPE_AND_FORWARD, true}
}

var (
	badPath       = regexp.MustCompile(`^[^/]|[\x00-\x20\x7f#]`)
	escapedSlash  = regexp.MustCompile(`%2[fF]`)
	escapedBack   = regexp.MustCompile(`%5[cC]`)
	percent       = regexp.MustCompile(`%[0-9a-fA-F]{2}|%`)
	madeEscape    = regexp.MustCompile(`\x00([0-9a-fA-F]{2})`)
	unreservedSet = regexp.MustCompile(`^[-._~0-9A-Za-z]$`)
	reservedSet   = regexp.MustCompile("[\"<>^`{|}]|[^\\x00-\\x7f]")
	dotParameters = regexp.MustCompile(`/(\.{1,2});[^/]*`)
	slashes       = regexp.MustCompile(`//+`)
)

// Of returns the normalized form of a path, which may have a query. It returns false if the
// request is rejected.
func (p Paths) Of(path string) (string, bool) {
	if p.Checked && badPath.MatchString(path) {
		return "", false
	}
	end := len(path)
	if i := strings.IndexByte(path, '?'); i >= 0 {
		end = i
	}
	path, query := path[:end], path[end:]
	if p.Unescaped {
		path = escapedBack.ReplaceAllString(escapedSlash.ReplaceAllString(path, "/"), `\`)
	}
	if p.Normalized {
		if p.Parameters {
			path = dotParameters.ReplaceAllString(path, "/$1")
		}
		path = strings.ReplaceAll(path, `\`, "/")
		if strings.Contains(path, "%00") {
			return "", false
		}
		path = withoutDots(spelled(path))
	}
	if before := path; p.Merged {
		path = slashes.ReplaceAllString(path, "/")
		if path == "/" && before != "/" {
			path = "//" // one before and one behind nothing
		}
	}
	return path + query, true
}

// spelled spells each character in one way.
func spelled(path string) string {
	path = reservedSet.ReplaceAllStringFunc(path, func(c string) string {
		var out strings.Builder
		for _, b := range []byte(c) {
			fmt.Fprintf(&out, "%%%02X", b)
		}
		return out.String()
	})
	path = percent.ReplaceAllStringFunc(path, func(e string) string {
		c, _ := hex.DecodeString(e[1:])
		switch {
		case len(c) == 0:
			return "\x00" // no escape, and it does not become one
		case unreservedSet.Match(c):
			return string(c)
		default:
			return e
		}
	})
	return strings.ReplaceAll(madeEscape.ReplaceAllString(path, "%25$1"), "\x00", "%")
}

// withoutDots removes dot segments as RFC 3986, 5.2.4, describes it, but that a segment may be empty.
func withoutDots(in string) string {
	out := ""
	for in != "" {
		switch {
		case strings.HasPrefix(in, "/./"):
			in = in[2:]
		case in == "/.":
			in = "/"
		case strings.HasPrefix(in, "/../"), in == "/..":
			in = "/" + strings.TrimPrefix(in[3:], "/")
			out = out[:max(0, strings.LastIndexByte(out, '/'))]
		default:
			n := len(in)
			if i := strings.IndexByte(in[1:], '/'); i >= 0 {
				n = 1 + i
			}
			out, in = out+in[:n], in[n:]
		}
	}
	return out
}
