// SPDX-License-Identifier: Apache-2.0

package meshtest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Passed reports whether all cases pass.
func Passed(results []Result) bool { return failures(results) == 0 }

func failures(results []Result) (n int) {
	for _, r := range results {
		if len(r.Problems) > 0 {
			n++
		}
	}
	return n
}

// WriteText writes results as "go test -v" does.
func WriteText(w io.Writer, results []Result) error {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "=== RUN   %s\n", r.Name)
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "    %s:%d: %s\n", r.File, r.Line, p)
		}
		fmt.Fprintf(&b, "--- %s: %s\n", r.verdict(), r.Name)
	}
	last := "PASS"
	if n := failures(results); n > 0 {
		last = fmt.Sprintf("FAIL: %d of %d cases", n, len(results))
	}
	_, err := io.WriteString(w, b.String()+last+"\n")
	return err
}

func (r *Result) verdict() string {
	switch {
	case r.Undecided:
		return "ERROR"
	case len(r.Problems) > 0:
		return "FAIL"
	default:
		return "PASS"
	}
}

// caseJSON is the JSON of a result. Later versions may add fields.
type caseJSON struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Result   string   `json:"result"` // "PASS", "FAIL" or "ERROR"
	Problems []string `json:"problems,omitempty"`
	Decision string   `json:"decision,omitempty"`
	Reached  []string `json:"reached,omitempty"`
}

// WriteJSON writes results as one JSON object: the list "cases", and the list "notReached" of the
// rules of NotReached, which may be nil.
func WriteJSON(w io.Writer, results []Result, notReached []string) error {
	cases := make([]caseJSON, len(results))
	for i, r := range results {
		cases[i] = caseJSON{r.Name, r.File, r.Line, r.verdict(), r.Problems, r.Decision, r.Reached}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"cases": cases, "notReached": notReached})
}

// junit is the XML that CI systems read.
type junit struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes results as JUnit XML.
func WriteJUnit(w io.Writer, results []Result) error {
	suite := junit{Name: "mesh", Tests: len(results)}
	for _, r := range results {
		c := junitCase{Name: r.Name, Class: r.File}
		if len(r.Problems) > 0 {
			problem := &junitProblem{r.Problems[0], strings.Join(r.Problems, "\n")}
			if r.Undecided {
				c.Error = problem
				suite.Errors++
			} else {
				c.Failure = problem
				suite.Failures++
			}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
