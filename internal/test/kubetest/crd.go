// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// crds is the collection of all CRDs.
const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// IstioCRDs returns the CRDs of the version of istio.io/api that the module under
// test requires, as YAML.
func IstioCRDs(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(moduleDir(tb, "istio.io/api"), "kubernetes", "customresourcedefinitions.gen.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// GatewayAPICRDs returns the CRDs of a channel, "standard" or "experimental", as YAML, in the
// version of sigs.k8s.io/gateway-api that the module under test requires. It returns the CRDs of
// the given plurals ("httproutes"), or without plurals all of the group gateway.networking.k8s.io.
func GatewayAPICRDs(tb testing.TB, channel string, plurals ...string) []byte {
	tb.Helper()
	const group = "gateway.networking.k8s.io_"
	dir := filepath.Join(moduleDir(tb, "sigs.k8s.io/gateway-api"), "config", "crd", channel)
	files, err := filepath.Glob(filepath.Join(dir, group+"*s.yaml"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no CRDs in %s: %v", dir, err)
	}
	var out []byte
	for _, file := range files {
		plural := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), group), ".yaml")
		if plural == "vap_safeupgrades" || len(plurals) > 0 && !slices.Contains(plurals, plural) {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(append(out, "\n---\n"...), data...)
	}
	return out
}

func moduleDir(tb testing.TB, module string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		tb.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// ApplyCRDs creates the CRDs of a YAML input that do not exist, and returns when
// all of them are served.
func (s *Server) ApplyCRDs(tb testing.TB, manifests []byte) {
	tb.Helper()
	var names []string
	for _, document := range documents(manifests) {
		name, err := s.Config().create(tb.Context(), crds, document)
		if err != nil {
			tb.Fatalf("create a CRD: %v\n%s", err, document)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if err := poll(tb.Context(), func() (bool, error) { return s.established(tb.Context(), name) }); err != nil {
			tb.Fatalf("CRD %s is not established: %v", name, err)
		}
	}
}

// DeleteCRD deletes a CRD with its objects, and returns when it is gone.
func (s *Server) DeleteCRD(tb testing.TB, name string) {
	tb.Helper()
	status, answer, err := s.Config().Call(tb.Context(), http.MethodDelete, pathOf(crds, name), nil)
	if err != nil || status != http.StatusOK {
		tb.Fatalf("delete CRD %s: status %d, %v: %s", name, status, err, answer)
	}
	if err := poll(tb.Context(), func() (bool, error) {
		status, _, err := s.Config().Call(tb.Context(), http.MethodGet, pathOf(crds, name), nil)
		return status == http.StatusNotFound, err
	}); err != nil {
		tb.Fatalf("CRD %s is still there: %v", name, err)
	}
}

// documents returns the documents of a YAML stream that say anything.
func documents(manifests []byte) [][]byte {
	var documents [][]byte
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(manifests), -1) {
		for line := range strings.Lines(document) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				documents = append(documents, bytes.TrimSpace([]byte(document)))
				break
			}
		}
	}
	return documents
}

func (s *Server) established(ctx context.Context, name string) (bool, error) {
	status, answer, err := s.Config().Call(ctx, http.MethodGet, pathOf(crds, name), nil)
	if err != nil {
		return false, err
	}
	if status != http.StatusOK {
		return false, fmt.Errorf("status %d: %s", status, answer)
	}
	var crd struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(answer, &crd); err != nil {
		return false, err
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == "Established" {
			return condition.Status == "True", nil
		}
	}
	return false, nil
}

// poll asks until something is done, has failed, or has taken too long.
func poll(ctx context.Context, done func() (bool, error)) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-patience.C:
			return fmt.Errorf("not within %v", startPatience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Namespace creates a namespace for the test, and returns its name.
func (s *Server) Namespace(tb testing.TB) string {
	tb.Helper()
	name, err := s.Config().create(tb.Context(), "/api/v1/namespaces",
		[]byte(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}}`))
	if err != nil {
		tb.Fatalf("create a namespace: %v", err)
	}
	return name
}
