// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pilotkit/pilotkit/configstore"
)

// The formats of the findings.
const (
	outputText = "text"
	outputJSON = "json"
)

// severity says what a finding means for the exit code.
type severity string

const (
	severityError   severity = "error"
	severityWarning severity = "warning"
	severityNote    severity = "note"
)

// reason says what kind of finding it is.
type reason string

const (
	// reasonUnreadable: an error of the operating system.
	reasonUnreadable reason = "unreadable"
	// reasonMalformed: broken YAML, an unknown field, a value of a wrong type.
	reasonMalformed reason = "malformed"
	// reasonUnknownKind: a kind or version that Istio's groups do not have.
	reasonUnknownKind reason = "unknown-kind"
	// reasonInvalid: a rule of the kind is broken.
	reasonInvalid reason = "invalid"
	// reasonDuplicate: an earlier document defines the object.
	reasonDuplicate reason = "duplicate"
	// reasonQuestionable: accepted, and probably not meant.
	reasonQuestionable reason = "questionable"
	// reasonNoEffect: accepted, and changes nothing.
	reasonNoEffect reason = "no-effect"
	// reasonNotChecked: not an object of Istio.
	reasonNotChecked reason = "not-checked"
)

// location is where something stands. Line and Column count from 1; 0 is not known.
type location struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// finding is one thing that there is to say.
type finding struct {
	Severity severity `json:"severity"`
	Reason   reason   `json:"reason"`
	location
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	Field      string `json:"field,omitempty"`
	Message    string `json:"message"`
	// file is the number of the file, by which findings are sorted.
	file int
}

// about returns a finding about an object, or about what is not known to be one.
func about(key configstore.ConfigKey) finding {
	f := finding{Kind: key.Kind.Kind, Namespace: key.Namespace, Name: key.Name}
	if key.Kind.Kind != "" {
		f.APIVersion = key.Kind.APIVersion()
	}
	return f
}

// String returns "file:line:column: Kind/namespace/name: field: message".
func (f finding) String() string {
	parts := []string{f.File}
	if f.Line > 0 {
		parts[0] += ":" + strconv.Itoa(f.Line)
		if f.Column > 0 {
			parts[0] += ":" + strconv.Itoa(f.Column)
		}
	}
	if f.Name != "" {
		object := f.Kind
		if f.Namespace != "" {
			object += "/" + f.Namespace
		}
		parts = append(parts, object+"/"+f.Name)
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	if f.Severity != severityError {
		parts = append(parts, string(f.Severity))
	}
	return printable(strings.Join(append(parts, f.Message), ": "))
}

// printable escapes what could forge a line, or be taken for a command by a terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// report is everything that there is to say.
type report struct {
	// Files are those that could be read, Objects those that could be decoded.
	Files    int       `json:"files"`
	Objects  int       `json:"objects"`
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Notes    int       `json:"notes"`
	Findings []finding `json:"findings"`

	unreadable bool
}

func (r *report) add(f finding) {
	switch f.Severity {
	case severityError:
		r.Errors++
	case severityWarning:
		r.Warnings++
	case severityNote:
		r.Notes++
	}
	r.unreadable = r.unreadable || f.Reason == reasonUnreadable
	r.Findings = append(r.Findings, f)
}

// finish sorts the findings by their places.
func (r *report) finish() {
	slices.SortStableFunc(r.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// exitCode is what the report means for a caller.
func (r *report) exitCode(warningsAsErrors bool) int {
	switch {
	case r.unreadable:
		return exitUnusable
	case r.Errors > 0, warningsAsErrors && r.Warnings > 0:
		return exitProblems
	default:
		return exitFine
	}
}

// print writes the findings, and as text a summary.
func (r *report) print(std streams, output string) error {
	if output == outputJSON {
		enc := json.NewEncoder(std.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	for _, f := range r.Findings {
		if _, err := fmt.Fprintln(std.out, f); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(std.err, "%s, %s in %s of %s; %s not checked\n", count(r.Errors, "error"), count(r.Warnings, "warning"),
		count(r.Objects, "object"), count(r.Files, "file"), count(r.Notes, "document"))
	return err
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
