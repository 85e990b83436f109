// SPDX-License-Identifier: Apache-2.0

package commit

import "log/slog"

// LogInvalid logs that an object of a source is invalid, and the state in effect instead: the last
// good one, a placeholder, or nothing.
func LogInvalid(log *slog.Logger, good, placeholder bool) {
	instead := "nothing"
	switch {
	case good:
		instead = "its last good state"
	case placeholder:
		instead = "a policy that is closed"
	}
	log.Warn("object is invalid", slog.String("in_effect", instead))
}
