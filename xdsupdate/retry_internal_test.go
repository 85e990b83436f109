// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"testing"
	"time"
)

// TestRetryDuringAPush: a failure that is reported while a push of everything runs is made up for by
// another push, and a push without failures ends the retries.
func TestRetryDuringAPush(t *testing.T) {
	p := &Pusher{}
	p.retry.ask(0)
	p.retryLocked(minRetry)
	p.makeUpLocked(&PushRequest{Full: true}) // the push begins
	p.retry.ask(2 * time.Second)
	p.retry.pushed()
	if !p.retry.failed || !p.retry.waiting || p.retry.at != 2*time.Second+2*minRetry {
		t.Errorf("after a failure during the push: %+v", p.retry)
	}
	p.makeUpLocked(&PushRequest{Full: true})
	p.retry.pushed()
	if p.retry != (retry{}) {
		t.Errorf("after a push of everything: %+v", p.retry)
	}
}
