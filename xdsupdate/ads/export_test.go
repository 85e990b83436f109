// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// SetParts has work on names divided into parts of n names, and differences found
// without the lock from n names on. It is called before anything else.
func (s *Server) SetParts(n int) { s.cache.partSize, s.cache.largeSize = n, n }

// Remains describes the state of clients that the server still has, for tests.
func (s *Server) Remains() string {
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	selections := 0
	for namespace, in := range c.selections {
		if len(in) == 0 {
			panic("there are no selections in namespace " + namespace)
		}
		selections += len(in)
	}
	return fmt.Sprintf("connections %d, addresses %d, selections %d, waiting %d, types %d, topics %d, leaving %d",
		len(c.conns), len(c.addresses), selections, len(c.unprepared), c.index.Types(), c.index.Len(), len(c.leaving))
}

// Whole decodes a state with all secrets in it.
func (s StateOfResource) Whole() (proto.Message, error) {
	return s.resource.Message()
}
