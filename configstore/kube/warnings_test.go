// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube"
)

// safeBuffer is a bytes.Buffer that is safe for concurrent use.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buffer.String(), text)
}

// TestWarnings: an object with warnings of its schema is in the cache, and the warnings are
// reported: in Warnings, once in the log, and in the status.
func TestWarnings(t *testing.T) {
	server, schemas, kind, ns, l := serveLimits(t, "warnings.example.com")
	resource := l.resource(schemas.All()[0]).Namespace(ns)
	log := &safeBuffer{}
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	runSynced(t, c)
	writer, err := kube.NewStatusWriter(c, restConfig(server.Config()), kube.StatusOptions{Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	runAny(t, writer.Run)
	expect := func(generation, condition string, warnings ...string) {
		t.Helper()
		expectStatus(t, l, ns, "a", generation, condition)
		var got []string
		for _, w := range c.Warnings() {
			got = append(got, w.Error())
		}
		if !slices.Equal(got, warnings) {
			t.Errorf("the warnings are %q, want %q", got, warnings)
		}
	}
	warning := "Limit " + ns + "/a: spec.value: is odd"
	a := object(kind, ns, "a", "odd")
	create(t, c, a)
	expect("1", "Accepted=True ValidWithWarnings spec.value: is odd", warning)
	since := c.Warnings()[0].Since
	update(t, c, object(kind, ns, "a", "odd, too"))
	expect("2", "Accepted=True ValidWithWarnings spec.value: is odd", warning)
	if got := c.Warnings()[0]; !got.Since.Equal(since) {
		t.Errorf("the warning is there since %v, then since %v", since, got.Since)
	}
	putSpec(t, resource, kind, "a", `{"value":"bad"}`)
	expect("3", "Accepted=False Invalid Limit "+ns+"/a is invalid: spec.value: is bad")
	putSpec(t, resource, kind, "a", `{"value":"good"}`)
	expect("4", "Accepted=True Valid ")
	putSpec(t, resource, kind, "a", `{"value":"odd"}`)
	expect("5", "Accepted=True ValidWithWarnings spec.value: is odd", warning)
	if err := c.Delete(kind, "a", ns, nil); err != nil {
		t.Fatal(err)
	}
	await(t, c, a, "")
	eventually(t, "the warning is gone with its object", func() bool { return len(c.Warnings()) == 0 })
	if got := log.count("is odd"); got != 2 {
		t.Errorf("the warning is in the log %d times, want each time that it appeared, which is 2:\n%s", got, &log.buffer)
	}
	if got := log.count("is bad"); got != 1 {
		t.Errorf("the error is in the log %d times, want once", got)
	}
}

// TestVerdictOvertakes: the verdict on an invalid object is known before the handlers have
// processed its last good state, and stays in the status.
func TestVerdictOvertakes(t *testing.T) {
	server, schemas, kind, ns, l := serveLimits(t, "overtakes.example.com")
	c := newCache(t, restConfig(server.Config()), schemas, kube.Options{})
	reached, proceed := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(proceed) })
	defer release() // before the cache is to end, if the test fails
	c.RegisterEventHandler(kind, func(_, _ configstore.Config, event configstore.Event) {
		if event == configstore.EventUpdate {
			select {
			case reached <- struct{}{}:
				<-proceed
			case <-proceed:
			}
		}
	})
	runSynced(t, c)
	writer, err := kube.NewStatusWriter(c, restConfig(server.Config()), kube.StatusOptions{Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, object(kind, ns, "a", "1")) // Nothing writes its status yet, which would be an update.
	eventually(t, "the object is there", func() bool { return c.Get(kind, "a", ns) != nil })
	update(t, c, object(kind, ns, "a", "2"))
	<-reached
	runAny(t, writer.Run)
	putSpec(t, l.resource(schemas.All()[0]).Namespace(ns), kind, "a", `{"value":"bad"}`)
	expectErrors(t, c, "a")
	release()
	expectStatus(t, l, ns, "a", "3", "Accepted=False Invalid Limit "+ns+"/a is invalid: spec.value: is bad")
}
