// SPDX-License-Identifier: Apache-2.0

package pilotkit_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// stumbles are clauses that begin with a pronoun instead of a noun, and words that only this project used: "keeps what
// names clusters from a client". Some are right; their number is bounded.
var stumbles = regexp.MustCompile(`(?i)\bwhat (is|are|has|have|had|was|were|they|it|there|does|do|can|cannot|may|might|must|will|would|` +
	`comes?|goes?|came|went|gone|waits?|differs?|follows?|remains?|becomes?|became|belongs?|changed?s?|happen(s|ed)?|need(s|ed)?|names?|counts?|` +
	`keeps?|makes?|made|wants?|takes?|clients?|others?|an?|the|one|some|this|that|registries|nobody|of|no|as)\b` +
	`|\bthose (of|that|who|which|with|whose)\b|\b(nothing|nobody|none) (is|are|of|that|has|have|was|were|else|comes|goes|needs|waits)\b` +
	`|\b(of|by|with|for|in|to|from|at) which\b|\b(anew|beside|whoever|whatever|whichever|heed(s|ed)?|hear[sd]? of|tells? of|told of)\b` +
	`|\b(has|have|had) (it|them|what|nothing|none|all|clients|proxies) ([a-su-z]|t[a-np-z])\w+|; (nil|zero|empty|""|false|0): `)

// begins are in each stumble; looking for them first spares most lines the expression.
var begins = strings.Split("what |those |nothing |nobody |none | which|anew|beside|ever|heed|hear|tell|told|has |have |had |; ", "|")

// Of a hundred comment lines of a folder's product files, and of a hundred lines of a page, so many may stumble; three
// in any case. No comment and no line of a page is wider. testdata/prose.json has the exceptions, which only shrink.
const inComments, inPages, always, widest = 2, 3, 3, 120

var (
	codeSpan = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<!--.*?-->")
	comment  = regexp.MustCompile(`^(.*?)(?:^|\s)// ?(.*)$`)
	notProse = regexp.MustCompile(`^(go:|nolint|SPDX)`)
)

// prose counts lines of a folder or page.
type prose struct{ lines, Stumbles, Wide int }

// TestProse keeps comments and pages readable: it bounds the share of lines that stumble, and their width.
func TestProse(t *testing.T) {
	t.Parallel()
	counts, exceptions := map[string]*prose{}, map[string]prose{}
	data, err := os.ReadFile("testdata/prose.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &exceptions); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		of, kind := path, filepath.Ext(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || strings.HasPrefix(path, ".") && path != "."):
			return filepath.SkipDir
		case kind != ".go" && kind != ".md" || strings.HasSuffix(path, ".pb.go"):
			return nil
		case kind == ".go":
			of = filepath.ToSlash(filepath.Dir(path))
		}
		text, err := os.ReadFile(path)
		if counts[of] == nil {
			counts[of] = &prose{}
		}
		if kind == ".md" {
			counts[of].page(string(text))
		} else {
			counts[of].code(string(text), strings.HasSuffix(path, "_test.go"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for of, p := range counts {
		share := inComments
		if strings.HasSuffix(of, ".md") {
			share = inPages
		}
		if most := max(exceptions[of].Stumbles, p.lines*share/100, always); p.Stumbles > most {
			t.Errorf("%s: %d of %d lines have a clause that begins with a pronoun; at most %d", of, p.Stumbles, p.lines, most)
		}
		if p.Wide > exceptions[of].Wide {
			t.Errorf("%s: %d lines are over %d columns, at most %d", of, p.Wide, widest, exceptions[of].Wide)
		}
	}
}

// page counts the lines of a page, without code, headings and the width of tables.
func (p *prose) page(text string) {
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if !code && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "#") {
			p.add(codeSpan.ReplaceAllString(line, "x"))
			p.measure(strings.HasPrefix(strings.TrimSpace(line), "|"), line)
		}
	}
}

// code counts the comments of a file; of tests only their width, without the output of examples.
func (p *prose) code(text string, test bool) {
	output := false
	for line := range strings.Lines(text) {
		found := comment.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil || notProse.MatchString(found[2]) || strings.Contains(line, `"//`) {
			output = false
			continue
		}
		if !test {
			p.add(found[2])
		}
		output = output || strings.HasPrefix(found[2], "Output:")
		p.measure(output || strings.TrimSpace(found[1]) != "" || strings.HasPrefix(found[2], "\t"), line)
	}
}

func (p *prose) add(text string) {
	p.lines++
	lower := strings.ToLower(text)
	if slices.ContainsFunc(begins, func(word string) bool { return strings.Contains(lower, word) }) && stumbles.MatchString(text) {
		p.Stumbles++
	}
}

func (p *prose) measure(free bool, line string) {
	if !free && utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")) > widest {
		p.Wide++
	}
}
