// SPDX-License-Identifier: Apache-2.0

package ipaddr

import (
	"errors"
	"fmt"
	"net/netip"
)

// CheckBind returns nil if a proxy can listen on an address, as far as the address
// itself tells, else why not, with what Envoy says.
func CheckBind(address string) error {
	addr, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return errors.New("it is not an IP address")
	case addr.Zone() != "":
		return fmt.Errorf("it has a zone (Envoy: malformed IP address: %s)", address)
	case addr.Unmap().IsMulticast(), addr.Unmap() == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return errors.New("it is an address of many, to which no connections come")
	default:
		return nil
	}
}
