// SPDX-License-Identifier: Apache-2.0

package headerformat

import (
	"fmt"
	"strconv"
	"strings"
)

// Check returns nil if Envoy accepts a text as the value of a header. The error contains the
// command and the reason, in Envoy's words if Envoy has a message for it.
func Check(text string) error {
	for rest := text; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			return nil
		}
		rest = rest[i:]
		if literal, escaped := strings.CutPrefix(rest, "%%"); escaped {
			rest = literal
			continue
		}
		c, ok := parse(rest)
		if !ok {
			return refused("Couldn't find valid command at position %d: a command is %%COMMAND%% or %%COMMAND(argument):length%%, "+
				"a percent sign %%%%", len(text)-len(rest))
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("%.100s: %w", rest[:c.end], err)
		}
		rest = rest[c.end:]
	}
}

// command is %NAME(ARGUMENT):LENGTH%.
type command struct {
	name, argument string
	// limited is set if it has a length.
	limited bool
	// end is its length in the text that it begins.
	end int
}

// parse parses the command at the beginning of a text, which is a percent sign. The argument ends
// at the first parenthesis after which the command can end, so that it may contain other
// parentheses and percent signs.
func parse(text string) (c command, ok bool) {
	n := 1
	for n < len(text) && isNameByte(text[n]) {
		n++
	}
	if c.name = text[1:n]; c.name == "" {
		return c, false
	}
	if n == len(text) || text[n] != '(' {
		c.end, c.limited = endOf(text, n)
		return c, c.end > 0
	}
	for i := n + 1; i < len(text); i++ {
		if text[i] != ')' {
			continue
		}
		if c.end, c.limited = endOf(text, i+1); c.end > 0 {
			c.argument = text[n+1 : i]
			return c, true
		}
	}
	return c, false
}

func isNameByte(b byte) bool { return 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' }

// endOf returns the end of a ":LENGTH%" or "%" that begins at start, or 0.
func endOf(text string, start int) (end int, limited bool) {
	i := start
	if i < len(text) && text[i] == ':' {
		for i++; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		}
		if _, err := strconv.ParseUint(text[start+1:i], 10, 64); err != nil {
			return 0, false
		}
		limited = true
	}
	if i == len(text) || text[i] != '%' {
		return 0, false
	}
	return i + 1, limited
}

// check returns the reason why Envoy would reject a command.
func (c command) check() error {
	if c.name == perRequestState && c.argument != "" && !c.limited {
		// Envoy treats the old command like this one.
		c.name, c.argument = "FILTER_STATE", c.argument+":PLAIN"
	}
	s, known := syntaxOf(c.name)
	switch {
	case !known:
		return notSupported(c.name)
	case s.argument == nil && (c.argument != "" || c.limited):
		return refused("%s does not take any parameters or length", c.name)
	case s.required && c.argument == "":
		return refused("%s requires parameters", c.name)
	case !s.limit && c.limited:
		return refused("%s does not allow length to be specified", c.name)
	case s.argument == nil:
		return nil
	default:
		return s.argument(c.argument)
	}
}

func notSupported(name string) error {
	if name == "ENVIRONMENT" {
		return refused("ENVIRONMENT shows the environment of the proxy's process, which may hold secrets")
	}
	if isNew(name) {
		return refused("Not supported field in StreamInfo: %s, by releases of Envoy before 1.40", name)
	}
	return refused("Not supported field in StreamInfo: %s", name)
}

// refused returns an error in Envoy's words, or in similar ones.
func refused(format string, args ...any) error { return fmt.Errorf(format, args...) }
