// SPDX-License-Identifier: Apache-2.0

// Package kube is the registry of a Kubernetes cluster.
package kube
