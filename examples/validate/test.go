// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pilotkit/pilotkit/configstore"
	"github.com/pilotkit/pilotkit/configstore/istio"
	"github.com/pilotkit/pilotkit/xdsupdate/traffic/meshtest"
)

// test runs the cases of files against the input, and returns the exit code.
func test(ctx context.Context, opts options, std streams) int {
	results, c, err := results(ctx, opts, std.in)
	if err == nil && c.report.Errors > 0 {
		c.report.finish()
		err = c.report.print(std, opts.output)
	} else if err == nil {
		err = c.print(std.out, results)
	}
	switch {
	case err != nil:
		fmt.Fprintln(std.err, "validate:", err)
		return exitUnusable
	case c.report.Errors > 0 || !meshtest.Passed(results):
		return exitProblems
	default:
		return exitFine
	}
}

// results returns the results of all cases, and the checker of the input, whose report may have
// errors.
func results(ctx context.Context, opts options, stdin io.Reader) ([]meshtest.Result, *checker, error) {
	var cases []meshtest.Case
	var failed []error
	for _, path := range opts.tests {
		data, err := os.ReadFile(path)
		if err == nil {
			var some []meshtest.Case
			some, err = meshtest.Parse(path, data)
			cases = append(cases, some...)
		}
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return nil, nil, err
	}
	opts.complete = true // the input is the mesh
	c := newChecker(opts)
	for _, in := range findInputs(opts.paths) {
		c.input(in, stdin)
	}
	if c.report.Errors > 0 {
		return nil, c, nil
	}
	policies, converted, err := c.push(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.converted = converted.Configs(istio.VirtualService)
	return meshtest.Run(policies, cases), c, nil
}

// print writes the results in the format of the options.
func (c *checker) print(out io.Writer, results []meshtest.Result) error {
	var unreached []string
	if c.opts.coverage {
		var configs []configstore.Config
		for _, m := range c.accepted {
			configs = append(configs, m.Config)
		}
		for _, config := range c.converted {
			configs = append(configs, *config)
		}
		unreached = meshtest.NotReached(configs, results)
	}
	switch c.opts.output {
	case outputJSON:
		return meshtest.WriteJSON(out, results, unreached)
	case outputJUnit:
		return meshtest.WriteJUnit(out, results)
	}
	err := meshtest.WriteText(out, results)
	for _, rule := range unreached {
		fmt.Fprintln(out, "no case reaches", rule)
	}
	return err
}
