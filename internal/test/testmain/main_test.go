// SPDX-License-Identifier: Apache-2.0

package testmain

import "testing"

func TestMain(m *testing.M) { Verify(m) }
