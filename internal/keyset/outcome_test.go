// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTelling: the first failure of a set is reported at once, further failures with increasing
// intervals, and its end once.
func TestTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb()
		c, _ := cacheOf(t, w)
		s := Source{URI: "https://a:secret@a/keys"}
		c.Retain(s, "one")
		c.Retain(s, "two")
		synctest.Wait()
		all := w.outcomes()
		if len(all) != 1 {
			t.Fatalf("told %d times at first", len(all))
		}
		first := all[0]
		if first.Kept || len(first.Users) != 2 || first.Err == nil || strings.Contains(first.Err.Error()+first.Source.String(), "secret") {
			t.Errorf("told %+v of %s", first, first.Source)
		}
		time.Sleep(24 * time.Hour)
		all = w.outcomes()
		if n := len(all); n < 20 || n > 32 { // 1, 2, 4 … 60 minutes, each a minute late at most
			t.Errorf("told %d times in a day", n)
		}
		for i, o := range all[1:] {
			if silence := o.at.Sub(all[i].at); silence < min(time.Minute<<min(i, 6), time.Hour) {
				t.Errorf("told after %v of silence, the %dth time", silence, i+2)
			}
		}
		before := len(all)
		w.set(s.URI, set("one"))
		time.Sleep(refresh)
		if all = w.outcomes(); len(all) != before+1 || all[before].Err != nil {
			t.Errorf("over: %+v", all[before:])
		}
		time.Sleep(3 * refresh)
		w.set(s.URI, "x")
		time.Sleep(2 * refresh)
		if all = w.outcomes(); len(all) < before+2 || !all[before+1].Kept {
			t.Errorf("failing again: %+v", all[before+1:])
		}
	})
}

// TestReportsOfEachOther: a set that fails every other time is reported at most once a minute.
func TestReportsOfEachOther(t *testing.T) {
	var x telling
	now, failures, ends := time.Now(), 0, 0
	for i := range 3600 {
		var err error
		if i%2 == 0 {
			err = ErrNotFetched
		}
		if !x.due(err, now.Add(time.Duration(i)*time.Second)) {
			continue
		}
		if err != nil {
			failures++
		} else {
			ends++
		}
	}
	if failures != 60 || ends != failures {
		t.Errorf("reported %d failures and %d ends in an hour", failures, ends)
	}
}
