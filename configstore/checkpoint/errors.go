// SPDX-License-Identifier: Apache-2.0

package checkpoint

import "errors"

// Why a file is refused, wrapped with its path.
var (
	// ErrForeign: the file is not a checkpoint file.
	ErrForeign = errors.New("not a checkpoint file")
	// ErrVersion: the file has a format that this version does not know.
	ErrVersion = errors.New("unknown version of the checkpoint format")
	// ErrCorrupt: the file is truncated or damaged.
	ErrCorrupt = errors.New("checkpoint is truncated or damaged")
	// ErrKind: the file has objects of a kind that the cache does not have, or whose specs
	// are of another type.
	ErrKind = errors.New("the cache does not have this kind of the checkpoint")
)
