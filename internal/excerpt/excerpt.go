// SPDX-License-Identifier: Apache-2.0

// Package excerpt bounds quotations from objects in errors. The author of an object chooses the
// length of its strings, and must not thereby choose the length of the errors that others read, log
// and send.
//
// # Concurrency
//
// Everything here is a pure function.
package excerpt

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Limit is how many bytes of a string are quoted.
const Limit = 256

// Cut returns s, or, if s has more than Limit bytes, as many whole characters of it
// as fit into them and the length of s: "aaa... (70000 bytes)".
func Cut(s string) string { return CutTo(s, Limit) }

// CutTo is Cut for another limit.
func CutTo(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && cut > limit-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// Name returns Cut of a name, quoted as Go quotes strings if it holds anything but
// printable characters.
func Name(name string) string {
	name = Cut(name)
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' {
			if unprintable(name) {
				return strconv.Quote(name)
			}
			break
		}
	}
	return name
}

// Object returns "kind namespace/name", each part as Name returns it, without the kind or the
// namespace if that is empty.
func Object(kind, namespace, name string) string {
	object := Name(name)
	if namespace != "" {
		object = Name(namespace) + "/" + object
	}
	if kind == "" {
		return object
	}
	return Name(kind) + " " + object
}

func unprintable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return true
		}
	}
	return false
}

// Phrase is a text of bounded length that Sprintf leaves as it is.
type Phrase string

// Sprintf is fmt.Sprintf with strings and errors among the arguments cut. It may
// modify args.
func Sprintf(format string, args ...any) string {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			if len(arg) > Limit {
				args[i] = Cut(arg)
			}
		case error:
			args[i] = Cut(arg.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}
