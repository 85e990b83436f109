// SPDX-License-Identifier: Apache-2.0

package ads

// buildLazy builds the lazy resources that a request names, before a lock is taken
// to subscribe to them: what builds them is code of the host.
func (c *cache) buildLazy(conn *connection, r *request) {
	for _, lazy := range c.lazy(conn, r) {
		lazy.make(c.failures)
	}
}

// lazy returns the lazy resources that a request names, built or not. It takes the
// lock.
func (c *cache) lazy(conn *connection, r *request) []*resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.view == nil || conn.view.overlay[r.typeURL].Len() == 0 {
		return nil
	}
	var out []*resource
	for _, names := range [][]string{r.names, r.subscribe} {
		for _, name := range names {
			if made, ok := conn.view.overlay.get(r.typeURL, name); ok && made.message == nil {
				out = append(out, made.resource)
			}
		}
	}
	return out
}
