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
	types, topics, wildcards := c.index.Count()
	if topics != c.index.Len() {
		panic(fmt.Sprintf("%d topics are counted as %d", topics, c.index.Len()))
	}
	inNamespaces := 0
	for _, in := range c.namespaces {
		inNamespaces += len(in)
	}
	if inNamespaces < len(c.selections) || len(c.namespaces) > 0 && inNamespaces == 0 {
		panic(fmt.Sprintf("%d selections are in namespaces, of at least %d", inNamespaces, len(c.selections)))
	}
	return fmt.Sprintf("views %d, connections %d, nodes %d, addresses %d, selections %d, waiting %d, types %d, topics %d, wildcards %d, leaving %d",
		len(c.views), len(c.conns), len(c.nodes), len(c.addresses), len(c.selections), len(c.unprepared), types, topics, wildcards, len(c.leaving))
}

// Whole decodes a state with all secrets in it.
func (s StateOfResource) Whole() (proto.Message, error) {
	return s.resource.Message()
}
