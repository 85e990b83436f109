// SPDX-License-Identifier: Apache-2.0

// The program is MOSN, a proxy that takes Envoy's resources over ADS, without the
// parts that the tests do not need.
package main

import (
	"os"

	"github.com/urfave/cli"
	"mosn.io/mosn/istio/istio1106"
	_ "mosn.io/mosn/istio/istio1106/sds"
	_ "mosn.io/mosn/istio/istio1106/xds"
	v2 "mosn.io/mosn/pkg/config/v2"
	_ "mosn.io/mosn/pkg/filter/listener/originaldst"
	_ "mosn.io/mosn/pkg/filter/network/connectionmanager"
	_ "mosn.io/mosn/pkg/filter/network/proxy"
	_ "mosn.io/mosn/pkg/filter/network/streamproxy"
	_ "mosn.io/mosn/pkg/filter/stream/faultinject"
	_ "mosn.io/mosn/pkg/filter/stream/gzip"
	_ "mosn.io/mosn/pkg/filter/stream/mirror"
	"mosn.io/mosn/pkg/mosn"
	_ "mosn.io/mosn/pkg/network"
	_ "mosn.io/mosn/pkg/router"
	"mosn.io/mosn/pkg/stagemanager"
	_ "mosn.io/mosn/pkg/stream/http"
	_ "mosn.io/mosn/pkg/stream/http2"
)

func main() {
	app := cli.NewApp()
	app.Flags = []cli.Flag{cli.StringFlag{Name: "config"}}
	app.Action = func(c *cli.Context) error {
		proxy := mosn.NewMosn()
		stages := stagemanager.InitStageManager(c, c.String("config"), proxy)
		stages.AppendInitStage(func(config *v2.MOSNConfig) { istio1106.InitXdsInfo(config, "", "", nil, nil) })
		stages.AppendInitStage(mosn.DefaultInitStage)
		stages.AppendPreStartStage(mosn.DefaultPreStartStage)
		stages.AppendStartStage(mosn.DefaultStartStage)
		stages.RunAll()
		return nil
	}
	if err := app.Run(os.Args); err != nil {
		os.Exit(1)
	}
}
