// SPDX-License-Identifier: Apache-2.0

package istio

// AnnotationBackendCertificate is an annotation of Gateways that were converted from a Kubernetes
// Gateway. Its value is the credentialName of the certificate that the proxies present to backends
// with a BackendTLSPolicy. Istio has no such annotation.
const AnnotationBackendCertificate = "pilotkit.io/backend-certificate"
