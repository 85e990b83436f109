// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// namesOf returns the objects of faults with a status, each once, with "!" before each whose text does not
// have a part.
func namesOf(list []ads.Fault, status ads.FaultStatus, part string) string {
	var names []string
	for _, f := range list {
		name := f.Object.Name
		if !strings.Contains(f.Text, part) {
			name = "!" + name
		}
		if f.Status == status {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// TestLeftOut: a caller that looks at each progress sees which objects proxies have accepted
// resources without, with the errors of the NACKs, and entries stay while another state is tried.
func TestLeftOut(t *testing.T) {
	eachShared(t, func(t *testing.T, typeURL string, delta bool) {
		t.Helper()
		s := newQuarantineScene(t, typeURL)
		s.provider.set("r", map[string]string{"a": "1", "b": "1", "c": "1"})
		s.flush()
		seen, stop := []string{}, make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			for {
				faults, changed := s.Faults()
				now := namesOf(faults, ads.FaultLeftOut, "bad value") + "/" + namesOf(faults, ads.FaultBuiltWithout, "broken")
				if len(seen) == 0 || seen[len(seen)-1] != now {
					seen = append(seen, now)
				}
				select {
				case <-changed:
				case <-stop:
					return
				}
			}
		})
		picky := s.judge("picky", delta, startsBad, "q", "r")
		s.judge("picky, too", delta, startsBad, "q", "r")
		step := func(resource string, values map[string]string) {
			s.provider.set(resource, values)
			s.flush()
			synctest.Wait()
		}
		synctest.Wait()
		step("r", map[string]string{"b": "bad"})
		step("r", map[string]string{"b": "bad2"})
		step("r", map[string]string{"b": "bad3", "c": "bad"})
		step("r", map[string]string{"c": "2"})
		step("q", map[string]string{"a": "broken", "c": "1"})
		step("q", map[string]string{"a": "2"})
		step("r", map[string]string{"b": ""})
		step("r", map[string]string{"c": "bad"})
		picky.Close()
		synctest.Wait()
		close(stop)
		watching.Wait()
		want := []string{"/", "b/", "b c/", "b/", "b/a", "b/", "/", "c/"}
		if !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
	})
}
