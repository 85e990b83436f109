// SPDX-License-Identifier: Apache-2.0

package traffic

// t68: the rings of Envoys have a maximum size, so that the weights of endpoints cannot enlarge
// them without a bound.
func (c *comparison) t68() {
	if c.isGRPC() {
		return
	}
	for _, r := range c.got[clusters] {
		config := object(r, "ringHashLbConfig")
		if delete(config, "maximumRingSize"); config != nil && len(config) == 0 {
			delete(r, "ringHashLbConfig")
		}
	}
}
