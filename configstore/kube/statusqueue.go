// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/kube/internal/statusqueue"
)

// statusQueue holds the objects whose status is to be looked at: those of which there
// is something new to say before all others.
type statusQueue = statusqueue.Queue[configstore.ConfigKey]

func newStatusQueue() *statusQueue { return statusqueue.New[configstore.ConfigKey]() }
