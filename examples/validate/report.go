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

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
	// outputJUnit is for tests.
	outputJUnit = "junit"
)

// severity determines the effect of a finding on the exit code.
type severity string

const (
	severityError   severity = "error"
	severityWarning severity = "warning"
	severityNote    severity = "note"
)

// reason is the kind of a finding.
type reason string

const (
	// reasonUnreadable is an error of the operating system.
	reasonUnreadable reason = "unreadable"
	// reasonMalformed is broken YAML, an unknown field, or a value of a wrong type.
	reasonMalformed reason = "malformed"
	// reasonUnknownKind is a kind or version that Istio's groups do not have.
	reasonUnknownKind reason = "unknown-kind"
	// reasonInvalid is a violation of the kind's validation.
	reasonInvalid reason = "invalid"
	// reasonDuplicate is an object that an earlier document defines.
	reasonDuplicate reason = "duplicate"
	// reasonQuestionable is a valid object that is probably a mistake.
	reasonQuestionable reason = "questionable"
	// reasonNoEffect is a valid object, or a part of one, that changes nothing.
	reasonNoEffect reason = "no-effect"
	// reasonNotChecked is a document that is not an Istio object.
	reasonNotChecked reason = "not-checked"
)

// location is a place in a file. Line and Column count from 1; 0 means unknown.
type location struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// finding is one result of the checks.
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
	// file is the index of the file, for sorting.
	file int
}

// about returns a finding about an object. The key may be incomplete.
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

// printable escapes characters that could forge a line, or that a terminal could interpret.
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

// report is the result of all checks.
type report struct {
	// Files is the number of files that could be read, Objects the number of objects that could be
	// decoded.
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

// finish sorts the findings by location.
func (r *report) finish() {
	slices.SortStableFunc(r.Findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// exitCode returns the exit code for the report.
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

// print writes the findings, followed by a summary if the output is text.
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
