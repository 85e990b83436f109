// SPDX-License-Identifier: Apache-2.0

package headerformat

import (
	"encoding/json"
	"slices"
	"strings"
)

func anything(string) error { return nil }

// headerNames checks "NAME" and "NAME?ALTERNATIVE".
func headerNames(argument string) error {
	name, alternative, _ := strings.Cut(argument, "?")
	if strings.Contains(alternative, "?") {
		return refused("More than 1 alternative header specified in token: %s", argument)
	}
	if !isHeaderName(name) || !isHeaderName(alternative) {
		return refused("Invalid header configuration. Format string contains invalid characters")
	}
	return nil
}

// isHeaderName reports whether a text is empty, or the name of a header or a pseudo header.
func isHeaderName(name string) bool {
	if name == "" {
		return true
	}
	token := strings.TrimPrefix(name, ":")
	for _, b := range []byte(token) {
		letter := 'a' <= b|0x20 && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", b) < 0 {
			return false
		}
	}
	return token != ""
}

// timeFormat checks a strftime format. Envoy rejects "%n" with any flags and width, which would put
// a line feed into the header.
func timeFormat(argument string) error {
	for rest := argument; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		verb := strings.TrimLeft(strings.TrimLeft(after, "-_0^#"), "123456789")
		if strings.HasPrefix(verb, "n") || strings.HasPrefix(verb, "En") || strings.HasPrefix(verb, "On") {
			return refused("Invalid header configuration. Format string contains newline")
		}
		rest = after
	}
}

// commonDuration checks "START:END" and "START:END:PRECISION".
func commonDuration(argument string) error {
	parts := strings.Split(argument, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return refused("Invalid common duration configuration: %s", argument)
	}
	if len(parts) == 3 && !slices.Contains([]string{"ms", "us", "ns"}, parts[2]) {
		return refused("Invalid common duration precision: %s", parts[2])
	}
	return nil
}

// filterState checks "KEY", "KEY:PLAIN", "KEY:TYPED" and "KEY:FIELD:NAME".
func filterState(argument string) error {
	parts := append(strings.SplitN(argument, ":", 4), "", "")
	key, form, field := parts[0], parts[1], parts[2]
	switch {
	case key == "":
		return refused("Invalid filter state configuration, key cannot be empty")
	case !slices.Contains([]string{"", "PLAIN", "TYPED", "FIELD"}, form):
		return refused("Invalid filter state serialize type, only support PLAIN/TYPED/FIELD")
	case (form == "FIELD") != (field != ""):
		return refused("Invalid filter state serialize type, FIELD should be used with the field name")
	default:
		return nil
	}
}

// metadataPath checks "NAMESPACE:KEY:…". Envoy also accepts a JSON list of texts as a path; any
// other argument is a path as it stands.
func metadataPath(argument string) error {
	var list []string
	isList := json.Unmarshal([]byte(argument), &list) == nil && len(list) > 0
	joined := strings.Join(list, ":")
	switch {
	case !isList:
		return nil
	case joined == "":
		return refused("requires parameters")
	case strings.ContainsAny(joined, ")%"):
		return refused("must be NAMESPACE:KEY; a list in JSON, which is obsolete, must have neither ) nor %%")
	default:
		return nil
	}
}

// metadataOf checks "TYPE:NAMESPACE:KEY:…".
func metadataOf(argument string) error {
	of, _, _ := strings.Cut(argument, ":")
	switch of {
	case "DYNAMIC", "CLUSTER", "ROUTE", "UPSTREAM_HOST", "LISTENER", "VIRTUAL_HOST":
		return nil
	case "LISTENER_FILTER_CHAIN":
		return refused("%s is not supported type of metadata, by releases of Envoy before 1.40", of)
	default:
		return refused("%s is not supported type of metadata", of)
	}
}

func grpcStatus(argument string) error {
	switch argument {
	case "", "CAMEL_STRING", "SNAKE_STRING", "NUMBER":
		return nil
	default:
		return refused("GrpcStatusFormatter only supports CAMEL_STRING, SNAKE_STRING or NUMBER, not %s", argument)
	}
}

// path checks "QUERY:SOURCE", which may both be empty. Further parts are ignored.
func path(argument string) error {
	parts := append(strings.SplitN(argument, ":", 3), "")
	if !slices.Contains([]string{"", "WQ", "NQ"}, parts[0]) {
		return refused("Invalid PATH option: '%s', only 'WQ'/'NQ' are allowed", parts[0])
	}
	if !slices.Contains([]string{"", "ORIG", "PATH", "ORIG_OR_PATH"}, parts[1]) {
		return refused("Invalid PATH option: '%s', only 'ORIG'/'PATH'/'ORIG_OR_PATH' are allowed", parts[1])
	}
	return nil
}

// forwardedCertificate checks a key of the header X-Forwarded-Client-Cert.
func forwardedCertificate(argument string) error {
	switch strings.ToLower(argument) {
	case "by", "hash", "cert", "chain", "subject", "uri", "dns":
		return nil
	case "":
		return refused("XFCC_VALUE command requires a subcommand")
	default:
		return refused("XFCC_VALUE command does not support subcommand: %s", argument)
	}
}
