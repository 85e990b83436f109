// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "errors"

// Why a file is refused, wrapped with its path.
var (
	// ErrForeign: the file is no checkpoint.
	ErrForeign = errors.New("file is no checkpoint")
	// ErrVersion: the file has a format that this version does not know.
	ErrVersion = errors.New("version of the checkpoint is not known")
	// ErrCorrupt: the file is truncated or damaged.
	ErrCorrupt = errors.New("checkpoint is truncated or damaged")
	// ErrKind: the file has objects of a kind that the cache does not have, or whose specs
	// are of another type.
	ErrKind = errors.New("kind of the checkpoint is not one of the cache")
)
