// SPDX-License-Identifier: Apache-2.0

// Package wire has the bytes that streams receive and send: requests, which are decoded no further
// than it takes to tell them from the ones before, the resources of responses, which are encoded
// once for all who are sent them, and the codec that sends them without a copy.
package wire
