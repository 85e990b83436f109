// SPDX-License-Identifier: Apache-2.0

package xdsupdate

import (
	"time"

	"github.com/pilotkit/pilotkit/configstore"
)

// ConfigKey names what changed. Services are named by kind ServiceEntry, their
// namespace, and their host name as the name, as Istio 1.30 does, wherever they
// come from.
type ConfigKey = configstore.ConfigKey

// TriggerReason says what caused a push.
type TriggerReason string

// The reasons, named as in Istio 1.30.
const (
	EndpointUpdate TriggerReason = "endpoint"
	ConfigUpdate   TriggerReason = "config"
	ServiceUpdate  TriggerReason = "service"
	ProxyUpdate    TriggerReason = "proxy"
	GlobalUpdate   TriggerReason = "global"
	NetworksUpdate TriggerReason = "networks"
	ClusterUpdate  TriggerReason = "cluster"
	UnknownUpdate  TriggerReason = "unknown"
)

// PushRequest asks for a push. It is immutable once it was handed over.
type PushRequest struct {
	// Full: definitions changed, not only endpoints.
	Full bool
	// Forced: push everything to everybody. It implies Full.
	Forced bool
	// ConfigsUpdated names what changed. Nil or empty means that everything may
	// have.
	ConfigsUpdated map[ConfigKey]struct{}
	// Reason counts the causes.
	Reason map[TriggerReason]int
	// Start is when the first of the merged requests was made.
	Start time.Time
}
