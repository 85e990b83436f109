// SPDX-License-Identifier: Apache-2.0

// Command everything imports every importable package of the library, so that a test can count its
// dependencies. It does nothing.
package main

import (
	_ "github.com/pilotkit/pilotkit/aggregate"
	_ "github.com/pilotkit/pilotkit/configstore"
	_ "github.com/pilotkit/pilotkit/configstore/checkpoint"
	_ "github.com/pilotkit/pilotkit/configstore/file"
	_ "github.com/pilotkit/pilotkit/configstore/istio"
	_ "github.com/pilotkit/pilotkit/configstore/manifest"
	_ "github.com/pilotkit/pilotkit/configstore/mcp"
	_ "github.com/pilotkit/pilotkit/configstore/memory"
	_ "github.com/pilotkit/pilotkit/registry"
	_ "github.com/pilotkit/pilotkit/registry/bridge"
	_ "github.com/pilotkit/pilotkit/registry/memory"
	_ "github.com/pilotkit/pilotkit/registry/serviceentry"
	_ "github.com/pilotkit/pilotkit/registry/serviceentry/explain"
	_ "github.com/pilotkit/pilotkit/xdsupdate"
	_ "github.com/pilotkit/pilotkit/xdsupdate/ads"
	_ "github.com/pilotkit/pilotkit/xdsupdate/authn"
	_ "github.com/pilotkit/pilotkit/xdsupdate/csds"
	_ "github.com/pilotkit/pilotkit/xdsupdate/debug"
	_ "github.com/pilotkit/pilotkit/xdsupdate/envoy"
	_ "github.com/pilotkit/pilotkit/xdsupdate/secrets"
	_ "github.com/pilotkit/pilotkit/xdsupdate/snapshots"
	_ "github.com/pilotkit/pilotkit/xdsupdate/traffic"
	_ "github.com/pilotkit/pilotkit/xdsupdate/traffic/meshtest"
	_ "github.com/pilotkit/pilotkit/xdsupdate/traffic/route"
)

func main() {}
