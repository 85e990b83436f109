// SPDX-License-Identifier: Apache-2.0

// Package testserver runs servers for tests: gRPC servers, and with them the parts of a
// control plane, that real clients and proxies reach over the loopback interface.
package testserver
