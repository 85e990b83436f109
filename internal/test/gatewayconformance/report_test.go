// SPDX-License-Identifier: Apache-2.0

package gatewayconformance

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/yaml"
)

// Where the results of the suite are written down.
const (
	reportFile = "testdata/report.yaml"
	pageFile   = "../../../docs/gateway-api.md"
)

// checkReport compares the results of a run of the whole suite with the committed ones, or writes
// them.
func checkReport(t *testing.T, s *suite.ConformanceTestSuite) {
	t.Helper()
	report, err := s.Report()
	if err != nil {
		t.Error(err)
		return
	}
	report.Date = "" // Otherwise each run would have another report.
	slices.SortFunc(report.ProfileReports, func(a, b confv1.ProfileReport) int { return strings.Compare(a.Name, b.Name) })
	data, err := yaml.Marshal(report)
	if err != nil {
		t.Error(err)
		return
	}
	compare(t, reportFile, data)
	compare(t, pageFile, page(report))
}

// compare compares a file with its expected content, or writes it.
func compare(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // As the other folders.
			t.Error(err)
		}
		if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // As the other files.
			t.Error(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what came of the suite, which is (%v; -update writes it):\n%s", file, err, want)
	}
}

// page returns docs/gateway-api.md.
func page(report *confv1.ConformanceReport) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# The Gateway API: what is supported

A run of the Gateway API project's own conformance suite, %s, channel %s,
against configstore/kube/gatewayapi with a real API server and real Envoys.
`+"`go test -run 'TestConformance$' -update .`"+` in internal/test/gatewayconformance writes this page,
and each run of the tests there checks it. testdata/report.yaml
is the report in the suite's own format.

## Profiles

Tests that passed, failed and were skipped. A test counts for each profile that has all its features.

| profile | core | extended |
|---|---|---|
`, report.GatewayAPIVersion, report.GatewayAPIChannel)
	for _, p := range report.ProfileReports {
		extended := confv1.Status{}
		if p.Extended != nil {
			extended = p.Extended.Status
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Name, numbers(p.Core), numbers(extended))
	}
	b.WriteString("\n## Features that are claimed\n\nWith the tests that rely on them and are run.\n\n| feature | tests |\n|---|---|\n")
	of := map[string][]string{}
	for i := range tests.ConformanceTests {
		for _, f := range tests.ConformanceTests[i].Features {
			of[string(f)] = append(of[string(f)], tests.ConformanceTests[i].ShortName)
		}
	}
	missing := unsupported()
	runs := func(test string) bool {
		i := slices.IndexFunc(tests.ConformanceTests, func(c suite.ConformanceTest) bool { return c.ShortName == test })
		for _, f := range tests.ConformanceTests[i].Features {
			if _, lacks := missing[f]; lacks {
				return false
			}
		}
		return true
	}
	for _, f := range supported() {
		names := slices.DeleteFunc(slices.Clone(of[string(f)]), func(test string) bool { return !runs(test) })
		slices.Sort(names)
		text := strings.Join(names, ", ")
		if len(names) > 12 {
			text = fmt.Sprintf("%d tests", len(names))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", f, cmp.Or(text, "none in the suite"))
	}
	b.WriteString("\n## Features that are not claimed\n\nTheir tests are skipped.\n\n| feature | why |\n|---|---|\n")
	for _, f := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(&b, "| %s | %s |\n", f, missing[f])
	}
	return b.Bytes()
}

func numbers(s confv1.Status) string {
	return fmt.Sprintf("%d, %d, %d", s.Passed, s.Failed, s.Skipped)
}
