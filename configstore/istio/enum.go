// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pilotkit/pilotkit/internal/excerpt"
)

// checkEnum refuses numbers that have no name: protobuf decodes them silently.
func checkEnum(at *field, value protoreflect.Enum) {
	values := value.Descriptor().Values()
	if values.ByNumber(value.Number()) != nil {
		return
	}
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	at.refuse("must be one of %s, is %d", excerpt.Phrase(strings.Join(names, ", ")), value.Number())
}
