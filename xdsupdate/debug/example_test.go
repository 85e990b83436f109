// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pilotkit/pilotkit/aggregate"
	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/file"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/configstore/memory"
	"github.com/pilotkit/pilotkit/registry"
	"github.com/pilotkit/pilotkit/registry/serviceentry"
	"github.com/pilotkit/pilotkit/xdsupdate"
	"github.com/pilotkit/pilotkit/xdsupdate/ads"
	"github.com/pilotkit/pilotkit/xdsupdate/debug"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic"
)

// A program mounts the pages of its control plane below a path of its own, for operators only.
func Example() {
	store := memory.Make(istio.Schemas())
	configs, files := memory.NewController(store), file.New("config", store)
	registries, policies := aggregate.NewController(), traffic.New(configs)
	server := ads.New(registries, ads.Options{Providers: []ads.Provider{policies}})
	registries.AddRegistry(func(updater xdsupdate.XDSUpdater) registry.Instance {
		return serviceentry.New(configs, updater)
	})

	pages := debug.New(debug.Options{
		Configs: configs, Services: registries, Server: server, Policies: policies,
		Sources: []configstore.Source{configstore.SourceOf("directory", files)},
		Authorize: func(r *http.Request) error {
			if user, password, _ := r.BasicAuth(); user != "operator" || password != "of the host" {
				return errors.New("operators only")
			}
			return nil
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/debug/", http.StripPrefix("/debug", pages))

	request := httptest.NewRequest(http.MethodGet, "/debug/proxies.json", http.NoBody) //nolint:noctx // it has that of the test
	for _, name := range []string{"stranger", "operator"} {
		request.SetBasicAuth(name, "of the host")
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, request)
		fmt.Println(name, answer.Code)
	}
	// Output:
	// stranger 403
	// operator 200
}
