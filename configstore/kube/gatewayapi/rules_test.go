// SPDX-License-Identifier: Apache-2.0

package gatewayapi

func decide(s *system, want, got *state) {}
