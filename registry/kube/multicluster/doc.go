// SPDX-License-Identifier: Apache-2.0

// Package multicluster makes registries of remote Kubernetes clusters come and go
// with the Secrets that hold their kubeconfigs, by Istio's convention: a Secret
// with the label istio/multiCluster: "true" has one kubeconfig for each cluster,
// under the name of the cluster.
//
//   - A cluster is added to the aggregate when its registry has synced. One that is
//     not reached contributes nothing, blocks nobody, and is added when it answers.
//   - A changed kubeconfig makes a new registry beside the old one, which takes its
//     place when it can answer for every kind of objects that the old one has answered
//     for. Until then, be it for ever, the old one stays as it is, and what is wrong
//     with the new one shows.
//   - Of several Secrets with one cluster the oldest counts.
//   - A cluster whose Secret goes is removed with everything that it contributed.
//   - What is wrong with a cluster hurts no other one; Clusters shows it.
//
// A kubeconfig comes from whoever may write Secrets, and must not be able to run
// programs or read files here: plugins (exec, auth-provider) and references to
// files are refused, unless Options.AllowLocal is set.
package multicluster
