// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pilotkit/pilotkit/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Verify(m) }

var update = flag.Bool("update", false, "write the golden files")

// execute runs the command.
func execute(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, streams{in: strings.NewReader(stdin), out: &o, err: &e})
	return code, o.String(), e.String()
}

// TestGolden runs the command with real files. -update writes the output.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		code       int
		summary    string
	}{
		{"text", "testdata/shop", exitProblems, "9 errors, 2 warnings in 7 objects of 4 files; 2 documents not checked\n"},
		{"complete", "-complete testdata/shop", exitProblems, "9 errors, 4 warnings in 7 objects of 4 files; 2 documents not checked\n"},
		{"json", "-o json -complete testdata/shop", exitProblems, ""},
		{"warnings", "-complete testdata/shop/b.yml", exitFine, "0 errors, 4 warnings in 3 objects of 1 file; 1 document not checked\n"},
		{"warnings", "-warnings-as-errors -complete testdata/shop/b.yml", exitProblems, "0 errors, 4 warnings in 3 objects of 1 file; 1 document not checked\n"},
		{"cluster", "-complete testdata/cluster", exitFine, "0 errors, 6 warnings in 10 objects of 2 files; 5 documents not checked\n"},
		{"good", "-o json -warnings-as-errors -complete testdata/good", exitFine, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := execute(t, "", strings.Fields(tt.args)...)
			if code != tt.code || errs != tt.summary {
				t.Errorf("exit code %d, want %d; standard error %q, want %q", code, tt.code, errs, tt.summary)
			}
			golden := filepath.Join("testdata", tt.name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out); diff != "" {
				t.Errorf("the output differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStandardInput: "-" is a file like others, and is read once.
func TestStandardInput(t *testing.T) {
	const entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a}\nspec: {hosts: [a.test], ports: [{number: 0, name: a, protocol: HTTP}]}\n"
	code, out, _ := execute(t, "# empty\n---\n"+entry, "-namespace", "prod", "-", "testdata/good", "-")
	want := "<stdin>:6:34: ServiceEntry/prod/a: spec.ports[0].number: must be 1–65535, is 0\n"
	if code != exitProblems || out != want {
		t.Errorf("exit code %d, output %q, want %q", code, out, want)
	}
}

// TestDuplicates: a file that is named twice, or reached by links, is one file; two
// files that define an object are a mistake, also if the first is invalid.
func TestDuplicates(t *testing.T) {
	dir := t.TempDir()
	write := func(name, host string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		text := "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec: {host: " + host + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one.yaml", "a.test")
	for link, target := range map[string]string{"link.yaml": "one.yaml", "circle": "."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := execute(t, "", dir, one, dir); code != exitFine || out != "" ||
		!strings.HasPrefix(errs, "0 errors, 0 warnings in 1 object of 1 file;") {
		t.Errorf("exit code %d, output %q, %q", code, out, errs)
	}
	write("one.yaml", "'!'")
	two := write("two.yaml", "a.test")
	code, out, _ := execute(t, "", dir)
	want := two + ":1:1: DestinationRule/default/a: is defined already, at " + filepath.Join(dir, "link.yaml") + ":1\n"
	if code != exitProblems || !strings.HasSuffix(out, want) {
		t.Errorf("exit code %d, output %q, want the end %q", code, out, want)
	}
}

// TestUnusable: input that cannot be checked never looks valid.
func TestUnusable(t *testing.T) {
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	dangling := t.TempDir()
	if err := os.Symlink(missing, filepath.Join(dangling, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "no file or directory is named"},
		{[]string{"-x"}, "flag provided but not defined: -x"},
		{[]string{"-o", "xml", "-"}, `-o is "xml", must be text or json`},
		{[]string{empty}, "there are no files to check"},
		{[]string{missing}, missing + ": stat " + missing + ": no such file or directory"},
		{[]string{"testdata/good", missing}, missing + ": stat " + missing + ": no such file or directory"},
		{[]string{dangling}, dangling + "/a.yaml: stat " + dangling + "/a.yaml: no such file or directory"},
		{[]string{"-o", "json", missing}, `"reason": "unreadable"`},
	} {
		code, out, errs := execute(t, "", tt.args...)
		if code != exitUnusable || !strings.Contains(out+errs, tt.want) {
			t.Errorf("%v: exit code %d, output %q, %q; want %q", tt.args, code, out, errs, tt.want)
		}
	}
	code, out, errs := execute(t, "", "-h")
	if code != exitFine || errs != "" || !strings.HasPrefix(out, "usage: ") {
		t.Errorf("-h: exit code %d, output %q, %q", code, out, errs)
	}
}

// TestTooLarge: a file that exceeds the limit is rejected, and not read to its end.
func TestTooLarge(t *testing.T) {
	endless := &endlessReader{}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-"}, streams{in: endless, out: &out, err: &errs})
	if code != exitProblems || !strings.Contains(out.String(), "<stdin>: the input has") || endless.read > 80<<20 {
		t.Errorf("exit code %d, output %q, %d bytes were read", code, out.String(), endless.read)
	}
}

type endlessReader struct{ read int }

// Read implements io.Reader.
func (r *endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	r.read += len(p)
	return len(p), nil
}

// TestFailingStreams: an input that fails, and an output that is closed, are errors.
func TestFailingStreams(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-"}, streams{in: broken{}, out: &out, err: &errs}); code != exitUnusable ||
		out.String() != "<stdin>: is broken\n" {
		t.Errorf("input: exit code %d, output %q", code, out.String())
	}
	for _, output := range []string{outputText, outputJSON} {
		errs.Reset()
		code := run(t.Context(), []string{"-o", output, "testdata/shop"}, streams{in: broken{}, out: broken{}, err: &errs})
		if code != exitUnusable || errs.String() != "validate: is broken\n" {
			t.Errorf("output: exit code %d, standard error %q", code, errs.String())
		}
	}
}

// broken is a stream that fails.
type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, errors.New("is broken") }
func (broken) Write([]byte) (int, error) { return 0, errors.New("is broken") }

// TestForgery: no text in a file becomes a line of its own, or a command to a terminal.
func TestForgery(t *testing.T) {
	text := "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: \"a\\n\\e[31mb\"}\nspec: {\"c\\nd\": 1}\n"
	_, out, _ := execute(t, text, "-")
	if strings.Count(out, "\n") != 1 || strings.Contains(out, "\x1b") || !strings.Contains(out, `/default/a\n\x1b[31mb: `) {
		t.Errorf("the output is %q", out)
	}
}

// FuzzFindings: whatever a file holds, the findings of it are one line each, at a place
// that the file has, and JSON that says as much.
func FuzzFindings(f *testing.F) {
	for _, name := range []string{"testdata/shop/a.yaml", "testdata/shop/b.yml", "testdata/shop/nested/c.json", "testdata/good/services.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, out, errs := execute(t, text, "-complete", "-")
		jsonCode, encoded, _ := execute(t, text, "-complete", "-o", "json", "-")
		if code == exitUnusable || code != jsonCode {
			t.Fatalf("exit codes %d and %d: %s", code, jsonCode, errs)
		}
		var r report
		if err := json.Unmarshal([]byte(encoded), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != strings.Count(out, "\n") || (r.Errors > 0) != (code == exitProblems) {
			t.Errorf("%d findings, exit code %d:\n%s", len(r.Findings), code, out)
		}
		for _, finding := range r.Findings {
			if finding.Line < 0 || finding.Line > strings.Count(text, "\n")+1 || finding.Column < 0 || finding.Message == "" {
				t.Errorf("finding %+v of %d lines", finding, strings.Count(text, "\n")+1)
			}
		}
	})
}
