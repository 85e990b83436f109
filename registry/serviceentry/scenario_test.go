// SPDX-License-Identifier: Apache-2.0

package serviceentry_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
)

func TestStatic(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2"))
	s.expect("create", "service ns/a.com add", "eds ns/a.com [1.1.1.1:80 1.1.1.2:80]", "config service ServiceEntry/ns/a.com")
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.2"))
	s.expect("the same again")
	s.apply(entry("a", nil, "a.com", "1.1.1.1", "1.1.1.3"))
	s.expect("another endpoint", "eds ns/a.com [1.1.1.1:80 1.1.1.3:80]")
	diff(t, "targets", s.targets("ns", "1.1.1.3"), []string{"a/a.com/0.0.0.0:80>80"})
	s.apply(entry("b", nil, "a.com", "1.1.1.4"))
	s.expect("a second entry", "service ns/a.com add", "eds ns/a.com [1.1.1.1:80 1.1.1.3:80 1.1.1.4:80]", "config service ServiceEntry/ns/a.com")
	s.delete(istio.ServiceEntry, "ns", "a")
	s.expect("delete", "eds ns/a.com [1.1.1.4:80]", "config service ServiceEntry/ns/a.com")
	s.delete(istio.ServiceEntry, "ns", "b")
	s.expect("delete the last", "service ns/a.com delete", "config service ServiceEntry/ns/a.com")
}

func TestSelection(t *testing.T) {
	t.Parallel()
	s := newSystem(t, serviceentry.Options{})
	s.apply(entry("a", selecting, "a.com"))
	s.expect("create", "service ns/a.com add", "config service ServiceEntry/ns/a.com")
	s.apply(workloadEntry("w", "1.1.1.1", nil))
	s.expect("add a WorkloadEntry", "eds ns/a.com [1.1.1.1:80]", "proxy c1 1.1.1.1")
	s.apply(workloadEntry("w", "1.1.1.2", nil))
	s.expect("change its address", "eds ns/a.com [1.1.1.2:80]", "proxy c1 1.1.1.2")
	s.apply(workloadEntry("w", "1.1.1.2", map[string]string{"app": "other"}))
	s.expect("change its labels", "eds ns/a.com []", "proxy c1 1.1.1.2")
	s.apply(entry("a", edits(selecting, func(e *networking.ServiceEntry) { e.WorkloadSelector.Labels["app"] = "other" }), "a.com"))
	s.expect("change the selector", "service ns/a.com update", "eds ns/a.com [1.1.1.2:80]", "config service ServiceEntry/ns/a.com")
	s.delete(istio.WorkloadEntry, "ns", "w")
	s.expect("delete it", "eds ns/a.com []")
}
