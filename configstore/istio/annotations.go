// SPDX-License-Identifier: Apache-2.0

package istio

// AnnotationBackendCertificate is the annotation of Gateways that were made of one of Kubernetes
// whose value is the credentialName of the certificate that its proxies show to backends with a
// BackendTLSPolicy. Istio has none for it.
const AnnotationBackendCertificate = "pilotkit.io/backend-certificate"
