// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
	"github.com/pilotkit/pilotkit/internal/test/kubetest"
	"github.com/pilotkit/pilotkit/internal/test/tier"
)

// childVariable is the environment variable that makes the test binary a process that writes
// statuses until its input ends.
const childVariable = "PILOTKIT_STATUS_CHILD"

// childConfig is the configuration of the child process.
type childConfig struct {
	Server    kubetest.Config
	Group     string
	Namespace string
}

func (c childConfig) options(identity string) kube.StatusOptions {
	return kube.StatusOptions{Lease: "status", LeaseNamespace: c.Namespace, Identity: identity, LeaseDuration: 2 * time.Second, Rate: 1000}
}

// runChild is the child process: it always reports a new condition of the object "a".
func runChild(text string) error {
	var config childConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	schemas := limits(config.Group)
	c, err := kube.New(restConfig(config.Server), schemas)
	if err != nil {
		return err
	}
	w, err := kube.NewStatusWriter(c, restConfig(config.Server), config.options("child"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	go c.Run(ctx.Done())
	go w.Run(ctx.Done())
	key := configstore.ConfigKey{Kind: schemas.All()[0].GroupVersionKind, Namespace: config.Namespace, Name: "a"}
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for i := 0; ; i++ {
		w.Report(key, kube.Condition{Type: "Host", True: true, Reason: "Child", Message: fmt.Sprint(i)})
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// startChild starts the child process, which ends with the test.
func startChild(t *testing.T, config childConfig) *os.Process {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		_ = cmd.Process.Kill() // It may be stopped.
		_ = cmd.Wait()
	})
	return cmd.Process
}

// TestStoppedProcess: a process that was suspended while it wrote, and resumes while another one
// leads, does not write its outdated status. A request that it had sent before is repaired.
func TestStoppedProcess(t *testing.T) {
	tier.OnlyFull(t, "faults of an API server")
	server, schemas, kind, ns, l := serveLimits(t, "stopped.example.com")
	config := childConfig{Server: server.Config(), Group: "stopped.example.com", Namespace: ns}
	a := object(kind, ns, "a", "1")
	create(t, newCache(t, restConfig(server.Config()), schemas, kube.Options{}), a)
	host := func() string {
		all := statements(t, l, ns, "a")
		return all[max(0, slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "Host=") }))]
	}
	leases := clientset(t, server).CoordinationV1().Leases(ns)
	for round := range 3 {
		child := startChild(t, config)
		eventually(t, "the child writes", func() bool { return strings.Contains(host(), "Child") })
		parent, end := startPlane(t, server, schemas, config.options("parent"))
		eventually(t, "the object is there", func() bool { return parent.cache.Get(kind, "a", ns) != nil })
		mine := kube.Condition{Type: "Host", True: true, Reason: "Parent", Message: fmt.Sprint(round)}
		parent.writer.Report(a.Key(), mine)
		if err := child.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint("Host=True Parent ", round)
		eventually(t, "the parent has taken over", func() bool { return parent.writer.Leading() && host() == want })
		if err := child.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		wrong, last := 0, want // how often it has become wrong
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
			got := host()
			if got != last && got != want {
				wrong++
			}
			last = got
		}
		if wrong > 4 {
			t.Errorf("after the child went on the condition was wrong %d times, and is %s", wrong, last)
		}
		eventually(t, "the condition is what the parent says", func() bool { return host() == want })
		lease, err := leases.Get(t.Context(), "status", metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != "parent" {
			t.Errorf("the Lease is %v, %v", lease, err)
		}
		end()
		_ = child.Kill()
	}
}
