// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pilotkit/pilotkit/internal/ipaddr"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/internal/objects"
)

// maxUnixPath is the maximum length of a unix socket path.
const maxUnixPath = 107

// canonicalBind returns a canonical bind, so that different spellings of an address are equal.
func canonicalBind(bind string) string {
	file, unix := strings.CutPrefix(bind, objects.UnixScheme)
	switch {
	case !unix:
		return ipaddr.Canonical(bind)
	case file == "" || isAbstract(file):
		return bind
	default:
		return objects.UnixScheme + path.Clean(file)
	}
}

// isAbstract reports whether the path of a unix socket is a name in Linux' abstract namespace
// instead of a file.
func isAbstract(file string) bool { return strings.HasPrefix(file, "@") }

// cleanDirectory returns the canonical form of an absolute directory, or "" for a relative one.
func cleanDirectory(directory string) string {
	if !path.IsAbs(directory) {
		return ""
	}
	return path.Clean(directory)
}

// checkBind returns an error if a Gateway cannot, or must not, listen on a canonical bind. The
// empty bind stands for all addresses and is valid.
func (s *settings) checkBind(bind string) error {
	if bind == "" {
		return nil
	}
	file, unix := strings.CutPrefix(bind, objects.UnixScheme)
	if !unix {
		if err := ipaddr.CheckBind(bind); err != nil {
			return fmt.Errorf("bind %.100q: %w", bind, err)
		}
		return nil
	}
	if err := s.checkSocket(file); err != nil {
		return fmt.Errorf("bind %.100q: %w", bind, err)
	}
	return nil
}

// checkSocket checks the path of a unix socket. The check matters because Envoy deletes an existing
// file of that name.
func (s *settings) checkSocket(file string) error {
	directory := s.unixSockets
	if directory != "/" {
		directory += "/"
	}
	switch {
	case len(file) > maxUnixPath:
		return fmt.Errorf("the path has more than %d bytes", maxUnixPath)
	case strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("the path has a control character")
	case isAbstract(file) && len(file) > 1:
		return nil
	case s.unixSockets == "":
		return errors.New("files are not allowed (Options.UnixSockets)")
	case !strings.HasPrefix(file, directory) || file == directory:
		return fmt.Errorf("the file is not in %s (Options.UnixSockets)", s.unixSockets)
	default:
		return nil
	}
}
