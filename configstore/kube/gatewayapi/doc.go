// SPDX-License-Identifier: Apache-2.0

// Package gatewayapi converts the objects of Kubernetes' Gateway API.
package gatewayapi
