// SPDX-License-Identifier: Apache-2.0

// Package kubetest starts a real kube-apiserver, with an etcd behind it, for tests. Conflicts,
// watches, relists, validation and access control are therefore those of Kubernetes itself. No
// controller runs, so EndpointSlices are not created, and the objects of a deleted namespace are
// not removed.
//
//	var apiserver kubetest.Shared
//
//	func TestMain(m *testing.M)          { apiserver.Main(m) }
//	//
//	func TestSomething(t *testing.T) {
//		config := apiserver.Server(t).Config() // where it is, and as whom to call
//
// The tests of a package share one server, which starts when the first of them
// asks for it, and keep apart by namespaces, or by CRDs of their own. A test that
// stops its server has one of its own, from Start.
//
// # The binary
//
// The server is built from its Go module, in testdata/apiserver, into the
// repository's .cache folder: 4 to 5 minutes on two idle cores when the caches are
// empty, nothing when it is there. A server starts in about 3 seconds and needs
// about 300 MB. The full tier builds it, and so does any run with the environment
// variable PILOTKIT_REQUIRE_APISERVER; the default tier uses one that is there, and
// skips the tests that need it otherwise. Where it cannot be built, because there is no
// network for example, they are skipped with the reason, or fail if the variable is set.
//
// # Faults
//
// Clients reach the server through a Front, a TCP proxy that can cut, refuse,
// delay and hold up connections. Server.Stop kills the process, and Server.Restart
// starts it again on the same data: clients keep their configuration, and a watch
// from a revision of before the restart gets "too old resource version" if there
// were changes in between.
package kubetest
