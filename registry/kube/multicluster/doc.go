// SPDX-License-Identifier: Apache-2.0

// Package multicluster adds and removes registries of remote Kubernetes clusters according to
// Secrets with their kubeconfigs, by Istio's convention: a Secret with the label
// istio/multiCluster: "true" has one kubeconfig for each cluster, under the name of the cluster.
//
//   - A cluster is added to the aggregate when its registry has synced. A cluster that is unreachable
//     contributes nothing, does not block other clusters, and is added when it responds.
//   - A changed kubeconfig creates a second registry. The new registry replaces the old one when it has
//     read every kind of objects that the old one has read. Until then, possibly forever, the old one
//     stays as it is, and Clusters reports the problems of the new one.
//   - Of several Secrets with one cluster the oldest is used.
//   - A cluster whose Secret is deleted is removed with all its services and endpoints.
//   - A problem of one cluster does not affect others; Clusters reports it.
//
// Kubeconfigs come from any user who may write Secrets, and must not be able to run programs or
// read files here. Therefore plugins (exec, auth-provider) and references to files are rejected,
// unless Options.AllowLocal is set.
package multicluster
