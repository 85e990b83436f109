// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pilotkit/pilotkit/internal/test/histories"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
)

// TestModelOfQuarantine: after random rejections and changes, the client has all accepted objects
// of each resource in the end, and the others are left out.
func TestModelOfQuarantine(t *testing.T) {
	for _, seed := range histories.Seeds(t, 30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			eachShared(t, func(t *testing.T, typeURL string, delta bool) {
				t.Helper()
				modelOfQuarantine(t, seed, typeURL, delta)
			})
		})
	}
}

func modelOfQuarantine(t *testing.T, seed uint64, typeURL string, delta bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	s := newQuarantineScene(t, typeURL)
	resources := []string{"p", "q", "r"}
	objects := 2 + random.IntN(30)
	badness := random.IntN(4)
	change := func(n int) {
		values := make(map[string]string)
		for range n {
			value := fmt.Sprint(random.IntN(1000))
			switch k := random.IntN(12); {
			case k < badness:
				value = []string{"bad", "bad-match", "bad-host"}[random.IntN(3)] + value
			case k == 11:
				value = ""
			}
			values[fmt.Sprintf("o%02d", random.IntN(objects))] = value
		}
		s.provider.set(resources[random.IntN(len(resources))], values)
	}
	for range 6 {
		change(objects)
	}
	s.flush()
	picky := s.judge("picky", delta, startsBad, resources...)
	other := s.judge("other", delta, nothingIsBad, resources...)
	for range 15 {
		if change(1 + random.IntN(3)); random.IntN(2) == 0 {
			s.flush()
		}
		if random.IntN(2) == 0 {
			synctest.Wait()
			if s.waits("picky") {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			s.knows(picky, "picky")
			s.knows(other, "other")
		}
	}
	s.flush()
	time.Sleep(time.Second) // a client that rejects much has to wait for its turns
	synctest.Wait()
	s.knows(picky, "picky")
	leftOut := []string{}
	for _, resource := range resources {
		for _, object := range slices.Sorted(maps.Keys(s.provider.objects[resource])) {
			value := s.provider.objects[resource][object]
			check(t, "the other: "+resource+" "+object, other.state(resource)[object], value)
			got, has := picky.state(resource)[object]
			if startsBad(value) {
				leftOut, value = append(leftOut, resource+" "+object), "failing"
				if !has { // it was found together with an object that had to be left out so
					value = ""
				}
			}
			check(t, resource+" "+object, got, value)
		}
		for object := range picky.state(resource) {
			if s.provider.objects[resource][object] == "" {
				t.Errorf("%s has %s", resource, object)
			}
		}
	}
	check(t, "left out", s.leftOut("picky"), leftOut)
	faults, _ := s.Faults()
	if got, want := namesOf(faults, ads.FaultLeftOut, ""), strings.Join(slices.Sorted(maps.Keys(objectsOf(leftOut))), " "); got != want {
		t.Errorf("objects %q are left out, want %q", got, want)
	}
	if err := s.WaitApplied(s.context(), nil); (err != nil) != (len(leftOut) > 0) {
		t.Errorf("WaitApplied = %v, left out are %q", err, leftOut)
	}
}
