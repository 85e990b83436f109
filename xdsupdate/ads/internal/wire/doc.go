// SPDX-License-Identifier: Apache-2.0

// Package wire has the encoding of requests and responses: requests, which are decoded only as far
// as needed to compare them with earlier ones, the resources of responses, which are encoded once
// for all clients, and the codec that sends them without a copy.
package wire
