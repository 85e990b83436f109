// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pilotkit/pilotkit/xdsupdate/envoy"
	"github.com/pilotkit/pilotkit/xdsupdate/xdstest"
)

// requireEnv is the variable that forbids skipping tests that need other programs.
const requireEnv = "PILOTKIT_REQUIRE_CLIENTS"

// operationsPrograms are the programs that the commands of docs/operations.md need.
var operationsPrograms = []string{"bash", "curl", "jq"}

func requirePrograms(t *testing.T) {
	t.Helper()
	for _, program := range operationsPrograms {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(requireEnv) != "" {
				t.Fatal(err)
			}
			t.Skipf("the commands of docs/operations.md are not run: %v", err)
		}
	}
}

// refusingGateway connects a gateway that rejects the scenario's VirtualService poison, and returns
// when the object has been left out for the gateway.
func refusingGateway(t *testing.T, p *program) {
	t.Helper()
	const routes, id = "http.80", "router~10.0.0.7~edge-1.infra~infra.svc.cluster.local"
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": "infra", "LABELS": map[string]any{"app": "edge"}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(p.xds, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	client := xdstest.NewClient(conn, xdstest.ClientOptions{
		Node: &core.Node{Id: id, Metadata: metadata}, Delta: true, NoHistory: true,
		Answer: func(r xdstest.Response) error {
			for _, resource := range r.Resources {
				m, err := resource.Message()
				if err != nil {
					return err
				}
				if strings.Contains(protojson.Format(m), "x-refused") {
					return errors.New("a route that this proxy does not take")
				}
			}
			return nil
		},
	})
	t.Cleanup(client.Close)
	if err := errors.Join(client.Subscribe(envoy.ListenerType), client.Subscribe(envoy.RouteType, routes), client.Connect(t.Context())); err != nil {
		t.Fatal(err)
	}
	eventually(t, "quarantine", func() bool {
		_, metrics := get(t, p.admin, "/metrics")
		return strings.Contains(metrics, `pilotkit_xds_quarantined_resources{type_url="`+envoy.RouteType+`"} 1`)
	})
}

// TestOperations runs the commands of docs/operations.md, one after the other, against a control plane with
// the faults that the page shows. Below each of them the page has lines of the answer.
func TestOperations(t *testing.T) {
	requirePrograms(t)
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```\n\n```text\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if n := strings.Count(string(page), "```sh\n"); n == 0 || n != len(commands) {
		t.Fatalf("%d of %d commands have an answer below them", len(commands), n)
	}
	p := start(t, "-dir", "testdata/operations").serving()
	refusingGateway(t, p)
	scratch := t.TempDir()
	for _, command := range commands {
		text, want := command[1], command[2]
		text = strings.ReplaceAll(text, "127.0.0.1:8080", p.admin)
		text = regexp.MustCompile(`\b\w+\.pprof\b`).ReplaceAllStringFunc(text, func(name string) string { return scratch + "/" + name })
		//nolint:gosec // the commands are those of our own page
		run := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
		run.Dir = "../.." // where a reader of the page is
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s%v\n%s", text, err, out)
			continue
		}
		for line := range strings.Lines(want) {
			if !strings.Contains(string(out), strings.TrimSpace(line)) {
				t.Errorf("%sdoes not say\n%sbut\n%s", text, line, out)
			}
		}
		if strings.TrimSpace(want) == "" {
			t.Errorf("%ssays nothing; it is:\n%s", text, out)
		}
	}
}
