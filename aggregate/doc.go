// SPDX-License-Identifier: Apache-2.0

// Package aggregate makes many config caches one, and many registries one.
package aggregate
