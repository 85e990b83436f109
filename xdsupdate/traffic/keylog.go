// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"log/slog"
	"slices"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/internal/keyset"
	"github.com/pilotkit/pilotkit/internal/loglimit"
)

// keyLog logs failures to fetch token keys.
type keyLog struct {
	logger  *slog.Logger
	limiter loglimit.Limiter
}

// outcome logs the result of a fetch, with the first object that uses the keys.
func (l *keyLog) outcome(o keyset.Outcome[configstore.ConfigKey]) {
	first := slices.MinFunc(o.Users, func(a, b configstore.ConfigKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	attrs := []any{
		slog.String("keys", o.Source.String()), slog.String("object", first.Namespace+"/"+first.Name), slog.Int("objects", len(o.Users)),
	}
	switch {
	case o.Err == nil:
		l.logger.Info("keys of tokens are fetched again", attrs...)
	case !l.limiter.Allow(o.Source.String(), "keys"):
	case o.Kept:
		l.logger.Warn("keys of tokens cannot be fetched: the last ones stay", append(attrs, slog.Any("error", o.Err))...)
	default:
		l.logger.Warn("keys of tokens cannot be fetched: requests with such tokens are denied", append(attrs, slog.Any("error", o.Err))...)
	}
}
