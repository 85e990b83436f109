// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSettings: flags count more than the file, and the file more than the defaults.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	content := "dir: /from-file\netcd: http://127.0.0.1:2379\ndrain: 3s\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _, err := parse([]string{"-config", path, "-dir", "/from-flag"})
	if err != nil {
		t.Fatal(err)
	}
	if s.dir != "/from-flag" || s.etcd != "http://127.0.0.1:2379" || s.drain != 3*time.Second || s.patience != 5*time.Second {
		t.Errorf("got %+v", s)
	}
}

func TestBadSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no source":      {nil, "no source"},
		"argument":       {[]string{"-dir", "x", "y"}, `"y"`},
		"no such flag":   {[]string{"-dri", "x"}, "-dri"},
		"half of TLS":    {[]string{"-dir", "x", "-tls-cert", "c"}, "-tls-key"},
		"identities":     {[]string{"-dir", "x", "-control-planes", "spiffe://a/ns/b/sa/c"}, "-tls-cert"},
		"drain":          {[]string{"-dir", "x", "-drain", "-1s"}, "-drain"},
		"no file":        {[]string{"-config", filepath.Join(dir, "none")}, "no such file"},
		"unknown name":   {[]string{"-config", file("name", "dri: x")}, `"dri"`},
		"file in file":   {[]string{"-config", file("config", "config: x")}, `"config"`},
		"no text":        {[]string{"-config", file("number", "dir: [x]")}, "dir: must be a text"},
		"value":          {[]string{"-config", file("value", "drain: soon")}, "drain"},
		"repeated name":  {[]string{"-config", file("twice", "dir: x\ndir: y")}, "dir"},
		"no YAML":        {[]string{"-config", file("yaml", "{")}, "yaml"},
		"-config of two": {[]string{"-config", file("two", "- dir")}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			if s, _, err := parse(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %+v, %v, want an error with %q", s, err, test.want)
			}
		})
	}
}

// TestHelp: asking for help is no error.
func TestHelp(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-h"}, &out); err != nil || !strings.Contains(out.String(), "-etcd endpoints") {
		t.Errorf("%v: %s", err, out.String())
	}
}
