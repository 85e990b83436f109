// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is the document that lists the metrics.
const page = "../../docs/metrics.md"

// TestPage: docs/metrics.md lists exactly the metrics that there are, with their types and
// labels, and its alerts are about no others.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	want, suffixes := make(map[string]string), make(map[string]bool)
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		kind := strings.ToLower(family.GetType().String())
		want[family.GetName()] = kind + " by " + strings.Join(labels, ", ")
		suffixes[family.GetName()] = true
		if kind == "histogram" {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				suffixes[family.GetName()+suffix] = true
			}
		}
	}
	got := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(pilotkit_\\w+)` \\| (\\w+) \\| ([^|]*) \\| [^|]{15,} \\|$").FindAllStringSubmatch(string(text), -1) {
		if _, again := got[row[1]]; again {
			t.Errorf("%s has two rows", row[1])
		}
		got[row[1]] = row[2] + " by " + strings.ReplaceAll(strings.TrimSpace(row[3]), "`", "")
	}
	check(t, "the rows of docs/metrics.md", got, want)
	for _, name := range regexp.MustCompile(`\bpilotkit_\w+`).FindAllString(string(text), -1) {
		if !suffixes[name] {
			t.Errorf("docs/metrics.md names %s, which is no metric", name)
		}
	}
}

// TestPageLabels: docs/metrics.md has all label values that are defined in this module.
func TestPageLabels(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	families, err := everything(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]map[string]bool)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if !slices.Contains([]string{"code", "source", "group", "version"}, label.GetName()) && family.GetName() != "pilotkit_configs" {
					if want[label.GetName()] == nil {
						want[label.GetName()] = make(map[string]bool)
					}
					want[label.GetName()][label.GetValue()] = true
				}
			}
		}
	}
	check(t, "labels", slices.Sorted(maps.Keys(want)), []string{"cause", "kind", "limit", "part", "protocol", "reason", "type_url"})
	for label, values := range want {
		row := regexp.MustCompile("(?m)^\\| `" + label + "` \\| (.*) \\|$").FindStringSubmatch(string(text))
		if row == nil {
			t.Errorf("docs/metrics.md has no row for the label %s", label)
			continue
		}
		got := make(map[string]bool)
		for _, value := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			got[value[1]] = true
		}
		check(t, "values of "+label, got, values)
	}
}
