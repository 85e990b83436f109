// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"time"
)

// errSilent ends a stream on which the server has stopped to answer.
var errSilent = errors.New("the server does not answer any more what is requested again")

// asking says when a source requests everything again on a stream of SotW.
type asking struct {
	// next is the time of the next request; the zero time means that none is due.
	next time.Time
	// heard are the kinds with a response since everything was last requested.
	heard map[*sourceKind]struct{}
	// again: that was not the first time on the stream.
	again bool
	// answers: the server has answered all kinds after everything was requested again. Servers that
	// push every change, as those of this package, need not.
	answers bool
}

// ask notes that everything was just requested on a stream.
func (s *Source) ask(again bool) {
	s.asking.next, s.asking.again, s.asking.heard = time.Time{}, again, make(map[*sourceKind]struct{}, len(s.kinds))
	if !s.delta && s.opts.AskAgain > 0 {
		s.asking.next = time.Now().Add(s.opts.AskAgain)
	}
}

// askAgain requests everything again if it is time to. The error says that the server, which answered that before, has
// answered nothing the last time.
func (s *Source) askAgain(p peer, out *outbox) error {
	if s.asking.next.IsZero() || time.Now().Before(s.asking.next) {
		return nil
	}
	if s.asking.answers && len(s.asking.heard) == 0 {
		s.asking.answers = false
		return errSilent
	}
	s.ask(true)
	for _, k := range s.kinds {
		out.put(func() error { return p.subscribe(k.typeURL, nil, nil) })
	}
	return nil
}

// hear notes a response.
func (s *Source) hear(r *response) {
	if k, ok := s.byType[r.typeURL]; ok {
		s.asking.heard[k] = struct{}{}
		s.asking.answers = s.asking.answers || s.asking.again && len(s.asking.heard) == len(s.kinds)
	}
}
