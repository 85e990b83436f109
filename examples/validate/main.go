// SPDX-License-Identifier: Apache-2.0

// Command validate checks files of Istio and of the Gateway API, in YAML or JSON, before a control
// plane reads them, for people, editors and CI systems.
//
//	go -C examples/validate run . [flags] FILE|DIR|- ...
//
// For a directory it checks the files that package configstore/file reads in it: .yaml, .yml and
// .json, without names that begin with a dot. "-" is the standard input. Each finding is one line
// on the standard output:
//
//	shop.yaml:14:5: VirtualService/shop/cart: spec.http[0].route[0].weight: must be 0 or more, is -1
//	shop.yaml:30:1: WasmPlugin/shop/log: warning: nothing is made of this kind: only providers of a program act on it
//
// Errors are reported for input that a store rejects: documents that cannot be read, kinds and
// versions that do not exist in Istio's groups, objects that violate a rule of their kind, objects
// of the Gateway API with fields that do not exist, and objects that are defined twice. Warnings
// are reported for valid input that is questionable, or has no effect. A note is a document that
// is not checked, such as a Deployment or a values.yaml. The summary is on the standard error.
//
// One file is judged by itself, and other objects may be elsewhere. With -complete the
// input is taken for everything that there is, and it is a warning, too, if a
// VirtualService, DestinationRule, Gateway or Sidecar, or a part of one, changes nothing
// for any client: no service has the host, another object shadows it, no such subset.
// Services come from ServiceEntries and from Kubernetes: Services of the input count, with
// the labels of Pods and of templates of pods. A Service whose pods are not in the input may
// have any subset. Objects of the Gateway API are converted: conditions of their statuses about
// parts without effect are warnings. A GatewayClass that is not in the input belongs
// to this controller, and each Secret and ConfigMap with certificates exists.
//
// # Tests
//
// With -test FILE it runs the cases of the file against the input, as package xdsupdate/traffic/meshtest
// describes them: the origin of a request, and its expected handling. The output is like the output
// of Go tests, or JSON, or JUnit XML (-o junit). With -coverage it lists the rules of VirtualServices and
// AuthorizationPolicies that no case reaches. Input with errors is not tested; its findings are printed.
//
// # Exit codes
//
//	0  there is no error, and with -warnings-as-errors no warning; with -test, all cases pass
//	1  there is; a case fails or decides nothing
//	2  the arguments are wrong, something cannot be read, or there is nothing to check
//
// "go run" turns every code except 0 into 1; build the command if the difference matters.
//
// # JSON
//
// With -o json the standard output is one object. The meaning of its fields is stable; later
// versions may add fields:
//
//	{
//	  "files": 2, "objects": 7, "errors": 1, "warnings": 1, "notes": 0,
//	  "findings": [
//	    {
//	      "severity": "error",    // or "warning", "note"
//	      "reason": "invalid",    // see the constants of type reason
//	      "file": "shop.yaml", "line": 14, "column": 5,
//	      "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
//	      "namespace": "shop", "name": "cart",
//	      "field": "spec.http[0].route[0].weight",
//	      "message": "must be 0 or more, is -1"
//	    }
//	  ]
//	}
//
// Unknown fields of a finding are absent: a file that cannot be read has no line, a document
// without a name no object. The field objects is the number of objects that could be read, valid or
// not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pilotkit/pilotkit/configstore/manifest"
)

// The exit codes.
const (
	exitFine     = 0
	exitProblems = 1
	exitUnusable = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	cancel()
	os.Exit(code)
}

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// options are the parsed flags.
type options struct {
	output           string
	warningsAsErrors bool
	complete         bool
	tests            []string
	coverage         bool
	manifest         manifest.Options
	paths            []string
}

// run is the command. It returns the exit code.
func run(ctx context.Context, args []string, std streams) int {
	opts, err := parse(args, std.out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitFine
	case err != nil:
		fmt.Fprintln(std.err, "validate:", err)
		return exitUnusable
	}
	if len(opts.tests) > 0 {
		return test(ctx, opts, std)
	}
	r, err := validate(ctx, opts, std.in)
	if err == nil {
		err = r.print(std, opts.output)
	}
	if err != nil {
		fmt.Fprintln(std.err, "validate:", err)
		return exitUnusable
	}
	return r.exitCode(opts.warningsAsErrors)
}

// parse parses the arguments. If they ask for help, it writes the usage to help.
func parse(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("validate", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error
	flags.StringVar(&o.output, "o", outputText, "`format` of the output: text or json, and with -test also junit")
	flags.BoolVar(&o.warningsAsErrors, "warnings-as-errors", false, "exit with 1 for warnings, too")
	flags.BoolVar(&o.complete, "complete", false, "the input is all that there is: also warn of policies that change nothing")
	flags.Func("test", "run the cases of a `file`, see package meshtest; it may be given several times", func(file string) error {
		o.tests = append(o.tests, file)
		return nil
	})
	flags.BoolVar(&o.coverage, "coverage", false, "with -test: list the rules that no case reaches")
	flags.StringVar(&o.manifest.DefaultNamespace, "namespace", "default", "`namespace` of objects that name none")
	flags.StringVar(&o.manifest.Domain, "domain", "cluster.local", "`suffix` of the names of services")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: validate [flags] FILE|DIR|- ...")
		flags.PrintDefaults()
	}
	err := flags.Parse(args)
	o.paths = flags.Args()
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(help)
		flags.Usage()
		return o, err
	case err != nil:
		return o, err
	case o.output != outputText && o.output != outputJSON && (o.output != outputJUnit || len(o.tests) == 0):
		return o, fmt.Errorf("-o is %q, must be %s or %s", o.output, outputText, outputJSON)
	case len(o.paths) == 0:
		return o, errors.New("no file or directory is named; -h shows how")
	}
	return o, nil
}

// validate checks the input and returns the report. It returns an error if there is no report.
func validate(ctx context.Context, opts options, stdin io.Reader) (*report, error) {
	c := newChecker(opts)
	for _, in := range findInputs(opts.paths) {
		c.input(in, stdin)
	}
	if c.report.Files == 0 && len(c.report.Findings) == 0 {
		return nil, errors.New("there are no files to check: none ends in .yaml, .yml or .json")
	}
	if opts.complete {
		if err := c.ineffective(ctx); err != nil {
			return nil, err
		}
	}
	c.report.finish()
	return c.report, nil
}
