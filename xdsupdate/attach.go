// SPDX-License-Identifier: Apache-2.0

package xdsupdate

// Attacher is the optional ability of a registry.ServiceDiscovery that consists of
// registries, such as aggregate.Controller, to hand them their updater. What is
// an updater and reads from a discovery, such as ads.Server, looks for it with
// registry.As and attaches itself when it is made, so that a host cannot forget
// to connect the two ends.
type Attacher interface {
	// AttachUpdater makes the updater one of those that the registries write to.
	// It has to come before the registries are made.
	AttachUpdater(updater XDSUpdater)
}
